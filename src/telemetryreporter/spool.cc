#include "telemetryreporter/spool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/gzip.h"

namespace nos::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPosition = "position.";
constexpr const char* kRefused = "refused";
constexpr const char* kUnfinished = "unfinished";
constexpr uint64_t kBlock = 4096;  // minimum disk use of a file
constexpr size_t kMaxKeptAside = 20;
constexpr int kRoomTries = 4;  // for a disk that other processes have filled

Status SystemError(const std::string& what, int error) {
  const Code code = error == ENOSPC || error == EDQUOT  ? Code::kExhausted
                    : error == EACCES || error == EPERM ? Code::kPermission
                                                        : Code::kUnavailable;
  return {code, fmt::format("{}: {}", what, std::strerror(error))};  // NOLINT(concurrency-*)
}

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

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write " + path, errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) return SystemError("sync " + path, errno);
  return Status::Ok();
}

}  // namespace

std::string Spool::Entry::Name() const { return fmt::format("{:020}-{}.gz", sequence, records); }

Result<std::unique_ptr<Spool>> Spool::Open(SpoolOptions options) {
  std::unique_ptr<Spool> spool(new Spool(std::move(options)));
  NOS_RETURN_IF_ERROR(spool->Load());
  return spool;
}

Status Spool::Load() {
  const std::string& folder = options_.folder;
  std::error_code failed;
  fs::create_directories(PathOf(kRefused), failed);
  if (failed) {
    return SystemError("make the spool's folder " + folder, failed.value());
  }
  lock_ = UniqueFd(open(PathOf("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  folder_ = UniqueFd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.valid() || !folder_.valid()) return SystemError("open " + folder, errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return {Code::kUnavailable, folder + ": another process uses this spool"};
  }
  NOS_RETURN_IF_ERROR(List());
  if (boot_.empty()) NOS_RETURN_IF_ERROR(BeginAnew());
  std::ranges::sort(entries_, {}, &Entry::sequence);
  while (!entries_.empty() && entries_.front().sequence <= acknowledged_) {
    unlink(PathOf(entries_.front().Name()).c_str());
    entries_.pop_front();
  }
  for (const Entry& entry : entries_) stats_.bytes += entry.bytes;
  next_ = std::max(acknowledged_, entries_.empty() ? 0 : entries_.back().sequence) + 1;
  return Status::Ok();
}

Status Spool::List() {
  std::error_code failed;
  for (auto file = fs::directory_iterator(options_.folder, failed); !failed && file != end(file);
       file.increment(failed)) {
    const std::string name = file->path().filename().string();
    Entry entry;
    if (name.starts_with(kPosition)) ReadPosition(name);
    if (!ReadName(name, entry.sequence, entry.records)) continue;
    std::error_code gone;
    entry.bytes = Blocks(fs::file_size(file->path(), gone));
    if (!gone) entries_.push_back(entry);
  }
  return failed ? SystemError("list " + options_.folder, failed.value()) : Status::Ok();
}

// "position.BOOT.SEQUENCE.LOST".
void Spool::ReadPosition(const std::string& name) {
  const std::vector<std::string_view> parts = Split(name, '.');
  uint64_t acknowledged = 0, lost = 0;
  if (parts.size() != 4 || parts[1].empty() || !ReadNumber(parts[2], acknowledged) ||
      !ReadNumber(parts[3], lost)) {
    return;
  }
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
  return WriteFile(position_, "");
}

Status Spool::SavePosition(uint64_t acknowledged) {
  std::string name = fmt::format("{}{}.{}.{}", kPosition, boot_, acknowledged, lost_);
  if (rename(PathOf(position_).c_str(), PathOf(name).c_str()) != 0) {
    ++stats_.disk_errors;
    return SystemError("rename to " + PathOf(name), errno);
  }
  position_ = std::move(name);
  return SyncFolder();
}

Status Spool::SyncFolder() {
  if (fsync(folder_.get()) == 0) return Status::Ok();
  const int why = errno;
  ++stats_.disk_errors;
  return SystemError("sync " + options_.folder, why);
}

Status Spool::WriteFile(const std::string& name, std::string_view content) {
  const std::string aside = PathOf(kUnfinished), path = PathOf(name);
  const UniqueFd fd(open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  Status written =
      fd.valid() ? WriteAll(fd.get(), content, path) : SystemError("write " + path, errno);
  if (written.ok() && rename(aside.c_str(), path.c_str()) != 0) {
    written = SystemError("rename to " + path, errno);
  }
  if (written.ok()) {
    written = SyncFolder();
    // Otherwise its records would count as lost, and be delivered after a restart.
    if (!written.ok()) unlink(path.c_str());
    return written;
  }
  unlink(aside.c_str());
  ++stats_.disk_errors;
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
  const Entry entry{next_, count, Blocks(compressed.size())};
  if (records.size() > 2 * options_.envelope_bytes || entry.bytes > options_.most_bytes) {
    Lose(count);
    return {Code::kExhausted, fmt::format("a record of {} bytes is too long", records.size())};
  }
  while (!entries_.empty() && stats_.bytes + entry.bytes > options_.most_bytes) {
    (void)Remove(false);
  }
  Status written = WriteFile(entry.Name(), compressed);
  for (int tries = 0; written.code() == Code::kExhausted && !entries_.empty(); ++tries) {
    if (tries == kRoomTries) break;
    (void)Remove(false);
    written = WriteFile(entry.Name(), compressed);
  }
  if (!written.ok()) {
    Lose(count);
    return written;
  }
  ++next_;
  stats_.bytes += entry.bytes;
  entries_.push_back(entry);
  return Status::Ok();
}

void Spool::Lose(uint64_t records) {
  lost_ += records;
  stats_.lost_records += records;
}

// Drops the oldest envelope and counts its records as lost, or sets it aside. The position is
// written first, so that a crash does not hide the loss.
Status Spool::Remove(bool keep) {
  const Entry entry = entries_.front();
  entries_.pop_front();
  stats_.bytes -= entry.bytes;
  Lose(entry.records);
  Status saved = SavePosition(entry.sequence);
  const std::string path = PathOf(entry.Name());
  if (!keep) {
    unlink(path.c_str());
    return saved;
  }
  ++stats_.set_aside;
  rename(path.c_str(),
         PathOf(fmt::format("{}/{}.gz", kRefused, refused_++ % kMaxKeptAside)).c_str());
  return saved;
}

std::optional<SpooledEnvelope> Spool::Oldest() {
  const std::scoped_lock lock(mutex_);
  while (!entries_.empty()) {
    const Entry& entry = entries_.front();
    const auto compressed = ReadFile(PathOf(entry.Name()), options_.most_bytes);
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

Status Spool::Acknowledge(uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (sequence != handed_.sequence) return NotFound("it was not handed out last");
  lost_ -= std::min(lost_, handed_.lost);
  const bool still_there = !entries_.empty() && entries_.front().sequence == sequence;
  // It was dropped for lack of space while it was being sent, so it is not lost.
  if (!still_there) lost_ -= std::min(lost_, handed_.records);
  handed_ = {};
  if (!still_there) return Status::Ok();
  const Entry entry = entries_.front();
  Status saved = SavePosition(sequence);
  if (!saved.ok()) return saved;  // it is sent again
  entries_.pop_front();
  stats_.bytes -= entry.bytes;
  unlink(PathOf(entry.Name()).c_str());
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
