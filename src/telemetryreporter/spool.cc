#include "telemetryreporter/spool.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/gzip.h"

namespace nos::telemetry {
namespace {

constexpr std::string_view kPosition = "position.";
constexpr const char* kRefused = "refused";
constexpr const char* kUnfinished = "unfinished";
constexpr uint64_t kBlock = 4096;  // minimum disk use of a file
constexpr size_t kMaxKeptAside = 20;
constexpr int kRoomTries = 4;  // for a disk that other processes have filled
// Names with larger numbers are damaged. Numbers go on after them, and servers take 63 bits.
constexpr uint64_t kMaxSequence = uint64_t{1} << 62, kMaxRecords = 1'000'000'000;
constexpr uint64_t kMaxAhead = uint64_t{1} << 32;  // of the acknowledged one
constexpr size_t kMaxBoot = 64;
constexpr int kReadTries = 5;  // before an envelope that the disk does not give is set aside

uint64_t Blocks(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

bool ReadNumber(std::string_view text, uint64_t& value) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// "00000000000000000042-17.gz".
bool ReadName(std::string_view name, uint64_t& sequence, uint64_t& records) {
  if (!name.ends_with(".gz")) return false;
  name.remove_suffix(3);
  const std::vector<std::string_view> parts = Split(name, '-');
  return parts.size() == 2 && ReadNumber(parts[0], sequence) && ReadNumber(parts[1], records);
}

// A UUID: letters, digits, dashes.
bool IsBoot(std::string_view text) {
  return !text.empty() && text.size() <= kMaxBoot && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

}  // namespace

std::string Spool::Entry::Name() const { return fmt::format("{:020}-{}.gz", sequence, records); }

Result<std::unique_ptr<Spool>> Spool::Open(SpoolOptions options) {
  NOS_ASSIGN(std::unique_ptr<SpoolFolder> folder, OpenSpoolFolder(options.folder, kRefused));
  return Open(std::move(options), std::move(folder));
}

Result<std::unique_ptr<Spool>> Spool::Open(SpoolOptions options,
                                           std::unique_ptr<SpoolFolder> folder) {
  std::unique_ptr<Spool> spool(new Spool(std::move(options), std::move(folder)));
  NOS_RETURN_IF_ERROR(spool->Load());
  return spool;
}

Status Spool::Load() {
  NOS_RETURN_IF_ERROR(List());
  if (boot_.empty()) NOS_RETURN_IF_ERROR(BeginAnew());
  std::ranges::sort(entries_, {}, &Entry::sequence);
  for (const Entry& entry : std::exchange(entries_, {})) {
    const uint64_t last = entries_.empty() ? acknowledged_ : entries_.back().sequence;
    if (entry.sequence <= acknowledged_) {
      folder_->Remove(entry.Name());
    } else if (entry.sequence == last || entry.sequence > acknowledged_ + kMaxAhead) {
      // The number occurs twice or was never given: a server would store one envelope, or none.
      PutAside(entry);
      Lose(entry.records);
    } else {
      entries_.push_back(entry);
      stats_.bytes += entry.bytes;
    }
  }
  next_ = std::max(acknowledged_, entries_.empty() ? 0 : entries_.back().sequence) + 1;
  return Status::Ok();
}

Status Spool::List() {
  NOS_ASSIGN(const std::vector<SpoolFolder::Listed> files, folder_->List());
  for (const auto& [name, bytes] : files) {
    Entry entry;
    if (name.starts_with(kPosition)) ReadPosition(name);
    if (!ReadName(name, entry.sequence, entry.records) || entry.records > kMaxRecords) continue;
    if (entry.Name() != name) continue;  // not written by a spool
    entry.bytes = Blocks(bytes);
    entries_.push_back(entry);
  }
  return Status::Ok();
}

// "position.BOOT.SEQUENCE.LOST". A loss of power during a rename may leave two of them on some
// file systems: the later one counts.
void Spool::ReadPosition(const std::string& name) {
  const std::vector<std::string_view> parts = Split(name, '.');
  uint64_t acknowledged = 0, lost = 0;
  if (parts.size() != 4 || !IsBoot(parts[1]) || !ReadNumber(parts[2], acknowledged) ||
      !ReadNumber(parts[3], lost) || acknowledged > kMaxSequence || lost > kMaxSequence) {
    return;
  }
  const bool later =
      position_.empty() || std::pair(acknowledged, lost) > std::pair(acknowledged_, lost_);
  if (!position_.empty()) folder_->Remove(later ? position_ : name);
  if (!later) return;
  boot_ = parts[1];
  acknowledged_ = acknowledged;
  lost_ = lost;
  position_ = name;
}

// Without a readable position it is a new spool: its sequence starts again at 1.
Status Spool::BeginAnew() {
  NOS_ASSIGN(const std::string uuid, ReadFile("/proc/sys/kernel/random/uuid"));
  boot_ = Trim(uuid);
  position_ = fmt::format("{}{}.0.0", kPosition, boot_);
  bool named = false;
  return WriteFile(position_, "", named);
}

Status Spool::SavePosition(uint64_t acknowledged) {
  std::string name = fmt::format("{}{}.{}.{}", kPosition, boot_, acknowledged, lost_);
  if (Status renamed = folder_->Rename(position_, name); !renamed.ok()) {
    ++stats_.disk_errors;
    return renamed;
  }
  position_ = std::move(name);
  NOS_RETURN_IF_ERROR(SyncFolder());
  acknowledged_ = std::max(acknowledged_, acknowledged);
  return Status::Ok();
}

Status Spool::SyncFolder() {
  Status synced = folder_->Sync();
  if (!synced.ok()) ++stats_.disk_errors;
  return synced;
}

Status Spool::WriteFile(const std::string& name, std::string_view content, bool& named) {
  Status written = folder_->Write(kUnfinished, content);
  if (written.ok()) written = folder_->Rename(kUnfinished, name);
  if (!written.ok()) {
    folder_->Remove(kUnfinished);
    ++stats_.disk_errors;
    return written;
  }
  written = SyncFolder();
  // Otherwise its records would count as lost, and be delivered after a restart.
  if (!written.ok()) folder_->Remove(name);
  named = !written.ok();
  return written;
}

// A file that was to be removed may be there after a crash: its number is not given again.
Status Spool::WriteEntry(Entry& entry, std::string_view content) {
  bool named = false;
  entry.sequence = next_;
  Status written = WriteFile(entry.Name(), content, named);
  if (written.ok() || named) ++next_;
  return written;
}

Status Spool::Append(std::span<const std::string> records) {
  const std::scoped_lock lock(mutex_);
  Status worst;
  std::string text;
  uint64_t count = 0;
  const auto flush = [&] {
    if (count == 0) return;
    if (const Status one = AppendOne(text, count); !one.ok()) worst = one;
    text.clear();
    count = 0;
  };
  for (const std::string& record : records) {
    if (!text.empty() && text.size() + record.size() > options_.envelope_bytes) flush();
    if (!text.empty()) text += ',';
    text += record;
    ++count;
  }
  flush();
  return worst;
}

Status Spool::AppendOne(std::string_view records, uint64_t count) {
  const std::string compressed = Gzip(records);
  Entry entry{0, count, Blocks(compressed.size())};
  if (records.size() > 2 * options_.envelope_bytes || entry.bytes > options_.max_bytes) {
    Lose(count);
    return {Code::kExhausted, fmt::format("a record of {} bytes is too long", records.size())};
  }
  while (!entries_.empty() && stats_.bytes + entry.bytes > options_.max_bytes) {
    (void)Remove(false);
  }
  Status written = WriteEntry(entry, compressed);
  for (int tries = 0; written.code() == Code::kExhausted && !entries_.empty(); ++tries) {
    if (tries == kRoomTries) break;
    (void)Remove(false);
    written = WriteEntry(entry, compressed);
  }
  if (!written.ok()) {
    Lose(count);
    return written;
  }
  stats_.bytes += entry.bytes;
  entries_.push_back(entry);
  return Status::Ok();
}

void Spool::Lose(uint64_t records) {
  lost_ += records;
  stats_.lost_records += records;
}

// Drops the oldest envelope and counts its records as lost, or sets it aside. The position is
// written first, so that a crash does not hide the loss. Without it the file stays: after a restart
// its number would be given again.
Status Spool::Remove(bool keep) {
  const Entry entry = entries_.front();
  entries_.pop_front();
  stats_.bytes -= entry.bytes;
  Lose(entry.records);
  Status saved = SavePosition(entry.sequence);
  if (keep && saved.ok()) {
    PutAside(entry);
  } else if (keep) {
    ++stats_.set_aside;
  } else if (saved.ok()) {
    folder_->Remove(entry.Name());
  }
  return saved;
}

void Spool::PutAside(const Entry& entry) {
  ++stats_.set_aside;
  (void)folder_->Rename(entry.Name(),
                        fmt::format("{}/{}.gz", kRefused, refused_++ % kMaxKeptAside));
}

std::optional<SpooledEnvelope> Spool::Oldest() {
  const std::scoped_lock lock(mutex_);
  while (!entries_.empty()) {
    const Entry& entry = entries_.front();
    const auto compressed = folder_->Read(entry.Name(), options_.max_bytes);
    if (!compressed.ok() && MayRead(entry, compressed.status())) return std::nullopt;
    auto records = compressed.ok() ? Gunzip(*compressed, 2 * options_.envelope_bytes)
                                   : Result<std::string>(compressed.status());
    if (records.ok()) {
      handed_ = {entry.sequence, entry.records, lost_};
      return SpooledEnvelope{entry.sequence, lost_, std::move(records).value()};
    }
    Log(LogLevel::kWarn, "setting aside a damaged envelope of the spool",
        {{"file", entry.Name()}, {"error", records.status().message()}});
    (void)Remove(true);
  }
  return std::nullopt;
}

// True if the envelope may be readable later: the disk, not the envelope, is at fault.
bool Spool::MayRead(const Entry& entry, const Status& why) {
  if (why.code() == Code::kNotFound || why.code() == Code::kInvalid) return false;
  ++stats_.disk_errors;
  if (unread_.sequence != entry.sequence) unread_ = {entry.sequence, 0};
  return ++unread_.times < kReadTries;
}

Status Spool::Acknowledge(uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (sequence != handed_.sequence) return NotFound("it was not handed out last");
  lost_ -= std::min(lost_, handed_.lost);
  const bool still_there = !entries_.empty() && entries_.front().sequence == sequence;
  // It was dropped for lack of space while it was being sent, so it is not lost.
  if (!still_there) lost_ -= std::min(lost_, handed_.records);
  handed_ = {};
  if (!still_there) return sequence > acknowledged_ ? SavePosition(sequence) : Status::Ok();
  const Entry entry = entries_.front();
  Status saved = SavePosition(sequence);
  if (!saved.ok()) return saved;  // it is sent again
  entries_.pop_front();
  stats_.bytes -= entry.bytes;
  folder_->Remove(entry.Name());
  return Status::Ok();
}

Status Spool::SetAside(uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (entries_.empty() || entries_.front().sequence != sequence) return NotFound("it is gone");
  handed_ = {};
  return Remove(true);
}

SpoolStats Spool::Stats() const {
  const std::scoped_lock lock(mutex_);
  SpoolStats stats = stats_;
  stats.envelopes = entries_.size();
  return stats;
}

}  // namespace nos::telemetry
