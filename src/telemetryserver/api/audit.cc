#include "telemetryserver/audit.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/millis.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxText = 1000;

std::string LineOf(const Audit::Entry& entry, Time now, int64_t unwritten) {
  JsonText json;
  json.Begin('{').Key("at").Number(ToMillis(now)).Key("action").Text(entry.action);
  const std::pair<const char*, const std::string&> members[] = {
      {"who", entry.who},   {"from", entry.from},       {"cluster", entry.cluster},
      {"what", entry.what}, {"outcome", entry.outcome}, {"why", entry.why}};
  for (const auto& [key, value] : members) json.Key(key).Text(Shortened(value, kMaxText));
  if (unwritten > 0) json.Key("unwritten").Number(unwritten);
  json.End('}');
  return std::move(json.text());
}

}  // namespace

Result<std::unique_ptr<Audit>> Audit::Open(const std::string& path, uint64_t max_bytes) {
  std::unique_ptr<Audit> audit(new Audit(path, max_bytes));
  if (!path.empty()) NOS_RETURN_IF_ERROR(audit->Append(""));
  return audit;
}

void Audit::Write(const Entry& entry, Time now) { Write(entry, now, 0); }

void Audit::WriteBounded(const Entry& entry, Time now) {
  int64_t unwritten = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (strangers_.Take("", now) > Duration(0)) {
      ++unwritten_;
      return;
    }
    unwritten = std::exchange(unwritten_, 0);
  }
  Write(entry, now, unwritten);
}

void Audit::Write(const Entry& entry, Time now, int64_t unwritten) {
  const std::string line = LineOf(entry, now, unwritten);
  Log(LogLevel::kInfo, "recording action in the audit log", {{"entry", line}});
  if (path_.empty()) return;
  const std::scoped_lock lock(mutex_);
  const Status written = Append(line + "\n");
  if (!written.ok()) {
    Log(LogLevel::kError, "failed to write the audit log", {{"error", written.ToString()}});
  }
}

// Opened for each line, so that log rotation may move the file.
Status Audit::Append(const std::string& line) {
  struct stat about{};
  if (stat(path_.c_str(), &about) == 0 &&
      static_cast<uint64_t>(about.st_size) + line.size() > max_bytes_ && about.st_size > 0) {
    (void)std::rename(path_.c_str(), (path_ + ".1").c_str());
  }
  const UniqueFd file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  const bool written = file.get() >= 0 && write(file.get(), line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  if (written) return Status::Ok();
  return Invalid(
      fmt::format("{}: it cannot be written: {}", path_, std::generic_category().message(errno)));
}

}  // namespace nos::telemetryserver
