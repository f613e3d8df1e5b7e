// A bounded queue of envelopes on disk, one file each, kept until they are acknowledged.
//
//   NOS_ASSIGN(auto spool, Spool::Open({.folder = "/var/lib/nos/telemetry"}));
//   spool->Append(records);                       // on disk when it returns
//   NOS_ASSIGN(auto oldest, spool->Oldest());     // sent, and when that is acknowledged:
//   spool->Acknowledge(oldest->sequence);
//
// A file is written under a temporary name, synced and renamed, so that after a crash an envelope
// is complete or absent. A sequence is never given twice, because the server takes the second
// envelope for a repetition. A damaged envelope is set aside. When the spool is full, the oldest
// envelope is dropped, and the number of its records is reported with the next one. Sequence, boot
// ID and loss count survive restarts. Each process needs its own folder.
//
// The folder:
//   position.BOOT.SEQUENCE.LOST
//                           empty; the name contains the last acknowledged sequence and the number
//                           of lost records not reported yet; renaming it needs no disk space
//   SEQUENCE-RECORDS.gz     an envelope's records: JSON objects separated by commas, gzip
//   refused/                the last few envelopes that were set aside, for analysis
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

#include "base/status.h"
#include "telemetryreporter/spool_folder.h"

namespace nos::telemetry {

struct SpoolOptions {
  std::string folder;  // created if it does not exist
  uint64_t max_bytes = uint64_t{64} << 20;
  // Maximum size of one envelope before compression; more records form several envelopes.
  uint64_t envelope_bytes = uint64_t{4} << 20;
};

struct SpooledEnvelope {
  uint64_t sequence = 0;
  uint64_t lost = 0;    // records dropped since the last acknowledged envelope
  std::string records;  // as WriteEnvelope takes them
};

struct SpoolStats {
  uint64_t envelopes = 0, bytes = 0;  // in the spool
  uint64_t lost_records = 0;          // since the process started, including envelopes set aside
  uint64_t set_aside = 0, disk_errors = 0;  // since the process started
};

class Spool {
 public:
  // Errors: kUnavailable (another process uses the folder, disk error), kPermission.
  static Result<std::unique_ptr<Spool>> Open(SpoolOptions options);
  // In another folder than a real one.
  static Result<std::unique_ptr<Spool>> Open(SpoolOptions options,
                                             std::unique_ptr<SpoolFolder> folder);

  // `records`: JSON objects, in order. Error: kExhausted (disk full) or kUnavailable: records that
  // could not be written are lost and counted.
  Status Append(std::span<const std::string> records);

  // The oldest envelope, or nullopt.
  std::optional<SpooledEnvelope> Oldest();
  // Removes the envelope that Oldest returned last. Error: see Append; the envelope may then be
  // sent again.
  Status Acknowledge(uint64_t sequence);
  // Sets aside an envelope that the server permanently rejects; its records count as lost.
  Status SetAside(uint64_t sequence);

  const std::string& boot() const { return boot_; }
  SpoolStats Stats() const;

 private:
  struct Entry {
    uint64_t sequence = 0, records = 0, bytes = 0;
    std::string Name() const;
  };

  Spool(SpoolOptions options, std::unique_ptr<SpoolFolder> folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}
  Status Load();
  Status List();
  void ReadPosition(const std::string& name);
  Status BeginAnew();
  Status SavePosition(uint64_t acknowledged);
  Status SyncFolder();
  // `named`: after an error, the file may have its name after a crash.
  Status WriteFile(const std::string& name, std::string_view content, bool& named);
  Status WriteEntry(Entry& entry, std::string_view content);
  bool MayRead(const Entry& entry, const Status& why);
  Status AppendOne(std::string_view records, uint64_t count);
  Status Remove(bool keep);
  void PutAside(const Entry& entry);
  void Lose(uint64_t records);

  const SpoolOptions options_;
  const std::unique_ptr<SpoolFolder> folder_;
  std::string boot_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // by sequence
  uint64_t next_ = 1;          // sequence
  std::string position_;       // name of the position file
  uint64_t acknowledged_ = 0;  // in the position file
  uint64_t lost_ = 0;          // records, not reported yet
  uint64_t refused_ = 0;
  SpoolStats stats_;
  struct {
    uint64_t sequence = 0, records = 0, lost = 0;
  } handed_;  // last result of Oldest
  struct {
    uint64_t sequence = 0;
    int times = 0;
  } unread_;  // the oldest envelope, which the disk did not give
};

}  // namespace nos::telemetry
