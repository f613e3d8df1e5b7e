// Records on disk until somebody has them safely: a bounded queue of envelopes, one file each.
//
//   NOS_ASSIGN(auto spool, Spool::Open({.folder = "/var/lib/nos/telemetry"}));
//   spool->Append(records);                       // on disk when it returns
//   NOS_ASSIGN(auto oldest, spool->Oldest());     // sent, and when that is acknowledged:
//   spool->Acknowledge(oldest->sequence);
//
// A file is written aside, synced and renamed, so that a crash leaves an envelope whole or absent.
// A damaged one is set aside. When the room is used up the oldest goes, and what it held is counted
// and told with the next one. Sequence, boot and count survive the process. One process a folder.
//
// The folder:
//   position.BOOT.SEQUENCE.LOST   empty: its name says up to where all is acknowledged, and how
//   many
//                           records are lost and not told yet. Renaming it needs no room on the
//                           disk
//   SEQUENCE-RECORDS.gz     an envelope's records: JSON objects separated by commas, gzip
//   refused/                the last few that were set aside, for whoever wonders why
//   lock
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace nos::telemetry {

struct SpoolOptions {
  std::string folder;  // made if it is not there
  uint64_t most_bytes = uint64_t{64} << 20;
  // Of one envelope, before compression; more records than that make several.
  uint64_t envelope_bytes = uint64_t{4} << 20;
};

struct SpooledEnvelope {
  uint64_t sequence = 0;
  uint64_t lost = 0;    // records that will never come, since the last acknowledged envelope
  std::string records;  // as WriteEnvelope takes them
};

struct SpoolStats {
  uint64_t envelopes = 0, bytes = 0;        // waiting
  uint64_t lost_records = 0;                // since this process began, set aside included
  uint64_t set_aside = 0, disk_errors = 0;  // since this process began
};

class Spool {
 public:
  // Errors: kUnavailable (another process has it, disk), kPermission.
  static Result<std::unique_ptr<Spool>> Open(SpoolOptions options);

  // JSON objects, in order. Error: kExhausted (disk full) or kUnavailable: what could not be
  // written is lost and counted.
  Status Append(std::span<const std::string> records);

  // The oldest envelope, or nothing.
  std::optional<SpooledEnvelope> Oldest();
  // The last one that Oldest returned has been taken over. Error: as Append; it may come again.
  Status Acknowledge(uint64_t sequence);
  // It will never be taken: it is kept apart, its records count as lost.
  Status SetAside(uint64_t sequence);

  const std::string& boot() const { return boot_; }
  SpoolStats Stats() const;

 private:
  struct Entry {
    uint64_t sequence = 0, records = 0, bytes = 0;
    std::string Name() const;
  };

  explicit Spool(SpoolOptions options) : options_(std::move(options)) {}
  Status Load();
  Status List();
  void ReadPosition(const std::string& name);
  Status BeginAnew();
  Status SavePosition(uint64_t acknowledged);
  Status WriteFile(const std::string& name, std::string_view content);
  Status AppendOne(std::string_view records, uint64_t count);
  Status Remove(bool keep);
  void Lose(uint64_t records);
  std::string PathOf(const std::string& name) const { return options_.folder + "/" + name; }

  const SpoolOptions options_;
  UniqueFd lock_, folder_;
  std::string boot_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // by sequence
  uint64_t next_ = 1;          // sequence
  std::string position_;       // the name of its file
  uint64_t acknowledged_ = 0;
  uint64_t lost_ = 0;  // records, not yet told
  uint64_t refused_ = 0;
  SpoolStats stats_;
  struct {
    uint64_t sequence = 0, records = 0, lost = 0;
  } handed_;  // what Oldest returned last
};

}  // namespace nos::telemetry
