#include "cmd/telemetry/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/fd.h"
#include "cmd/findings/report.h"
#include "cmd/terminal.h"
#include "telemetryserver/backup.h"
#include "telemetryserver/verification.h"

namespace nos::cmd {
namespace {

using telemetryserver::Harm;
using telemetryserver::StoreCheck;

constexpr size_t kWidth = 100;
constexpr Duration kReportEvery = std::chrono::seconds(2);
constexpr std::string_view kStandard = "-";  // input or output

using StoreOf = Result<std::string> (*)(const std::string& config);

struct BackupFlags {
  const CLI::App& telemetry;  // its --config, before the command, counts too
  std::string file{}, store{}, config{}, output = "text";
  bool force = false;
};

std::string ConfigOf(const BackupFlags& flags) {
  const CLI::Option* before = flags.telemetry.get_option("--config");
  return flags.config.empty() && before->count() > 0 ? before->as<std::string>() : flags.config;
}

Result<std::string> StoreNamed(const BackupFlags& flags, StoreOf store_of) {
  const std::string config = ConfigOf(flags);
  if (flags.store.empty()) return store_of(config);
  if (config.empty()) return flags.store;
  return Invalid("--store and --config name two databases: give one");
}

std::string Size(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// Lines on standard error while a command runs for long, and its end by Ctrl-C.
class Reporter {
 public:
  // `doomed`: a file that a second Ctrl-C removes.
  Reporter(std::string name, const std::string& doomed)
      : name_(std::move(name)), interrupt_(doomed) {}

  // For telemetryserver::CopyProgress.
  bool Copied(int64_t done, int64_t total) {
    if (IsDue()) Say(fmt::format("copied {} of about {}", Size(done), Size(total)));
    return !interrupt_.Requested();
  }
  // For telemetryserver::VerifyProgress.
  bool Verified(std::string_view code, int64_t rows) {
    if (IsDue()) Say(rows > 0 ? fmt::format("{}: {} rows", code, rows) : fmt::format("{}", code));
    return !interrupt_.Requested();
  }
  void Say(const std::string& text) const { std::cerr << name_ << ": " << text << "\n"; }

 private:
  bool IsDue() {
    const Time now = clock_.Now();
    if (now < next_) return false;
    next_ = now + kReportEvery;
    return true;
  }

  const std::string name_;
  const Interrupt interrupt_;
  const SteadyClock clock_;
  Time next_ = clock_.Now() + kReportEvery;
};

// A file in a folder of its own, which only this user can read; removed at the end.
class PassingFile {
 public:
  PassingFile() {
    std::error_code failed;
    folder_ = std::filesystem::temp_directory_path(failed) / "nos-telemetry-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ~PassingFile() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  PassingFile(const PassingFile&) = delete;
  PassingFile& operator=(const PassingFile&) = delete;
  std::string path() const { return folder_ + "/copy.db"; }

 private:
  std::string folder_;
};

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return {Code::kUnavailable, std::generic_category().message(errno)};
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Status::Ok();
}

// A stream of any length: it is never in memory as a whole.
Status Pass(int from, int to) {
  std::array<char, size_t{1} << 16> buffer{};
  while (true) {
    const ssize_t count = read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {Code::kUnavailable, std::generic_category().message(errno)};
    if (count == 0) return Status::Ok();
    NOS_RETURN_IF_ERROR(WriteAll(to, {buffer.data(), static_cast<size_t>(count)}));
  }
}

int Print(const std::vector<StoreCheck>& checks, const std::string& path,
          const std::string& output) {
  Findings findings;
  findings.Begin(path);
  for (const StoreCheck& check : checks) {
    if (check.harm == Harm::kNone) {
      findings.Ok(check.code, check.message, check.objects);
    } else {
      findings.Fail(check.code, check.message, check.remedy, check.objects);
    }
  }
  if (output == "json") {
    std::cout << WriteJsonPretty(FindingsJson(findings.all())) << "\n";
  } else {
    std::cout << FindingsText(findings.all(), std::clamp<size_t>(TableWidth(), 60, kWidth));
  }
  return FindingsExitCode(findings.all());
}

Status RunBackup(const BackupFlags& flags, StoreOf store_of) {
  NOS_ASSIGN(const std::string store, StoreNamed(flags, store_of));
  const bool standard = flags.file == kStandard;
  const PassingFile passing;
  const std::string target = standard ? passing.path() : flags.file;
  Reporter reporter("nos telemetry backup", standard ? target : "");
  const auto made = telemetryserver::BackUp(
      store, target,
      {.replace = standard || flags.force,
       .progress = [&](int64_t done, int64_t total) { return reporter.Copied(done, total); }});
  if (made.status().code() == Code::kAlreadyExists) {
    return Invalid(made.status().message() + ": --force replaces it");
  }
  NOS_RETURN_IF_ERROR(made.status());
  const std::string about = fmt::format("{}, version {}", Size(made->bytes), made->version);
  if (!standard) {
    std::cout << "wrote " << flags.file << ": " << about << "\n";
    return Status::Ok();
  }
  const UniqueFd file(open(target.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {Code::kUnavailable, "cannot read the copy"};
  NOS_RETURN_IF_ERROR(Pass(file.get(), STDOUT_FILENO).Within("standard output"));
  reporter.Say("wrote " + about);
  return Status::Ok();
}

// "20261129T085500Z".
std::string StampOf(Time now) {
  std::string stamp = FormatTime(now);
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  return stamp;
}

Status RunRestore(const BackupFlags& flags, StoreOf store_of) {
  NOS_ASSIGN(const std::string store, StoreNamed(flags, store_of));
  const bool standard = flags.file == kStandard;
  const PassingFile passing;
  const std::string file = standard ? passing.path() : flags.file;
  Reporter reporter("nos telemetry restore", standard ? file : "");
  if (standard) {
    const UniqueFd copy(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!copy.valid()) return {Code::kUnavailable, "cannot write " + file};
    NOS_RETURN_IF_ERROR(Pass(STDIN_FILENO, copy.get()).Within(file));
  }
  const auto restored = telemetryserver::Restore(
      file, store,
      {.stamp = StampOf(SystemClock().Now()),
       .copying = [&](int64_t done, int64_t total) { return reporter.Copied(done, total); },
       .verifying = [&](std::string_view code,
                        int64_t rows) { return reporter.Verified(code, rows); }});
  NOS_RETURN_IF_ERROR(restored.status());
  for (const StoreCheck& check : restored->damaged) reporter.Say(check.code + ": " + check.message);
  std::cout << fmt::format("restored {}: {}, version {}\n", store, Size(restored->facts.bytes),
                           restored->facts.version);
  if (!restored->previous.empty()) {
    std::cout << "kept the former database: " << restored->previous << "\n";
  }
  return Status::Ok();
}

int RunVerify(const BackupFlags& flags, StoreOf store_of) {
  const std::string name = "nos telemetry verify";
  std::string path = flags.file;
  if (path.empty()) {
    const auto store = StoreNamed(flags, store_of);
    if (!store.ok()) return Fail(name, store.status());
    path = *store;
  } else if (!flags.store.empty() || !ConfigOf(flags).empty()) {
    return Fail(name, Invalid("FILE names the database: leave out --store and --config"));
  }
  Reporter reporter(name, "");
  const auto checks = telemetryserver::VerifyStore(
      path, [&](std::string_view code, int64_t rows) { return reporter.Verified(code, rows); });
  if (!checks.ok()) return Fail(name, checks.status());
  return Print(*checks, path, flags.output);
}

void AddStoreFlags(CLI::App& command, BackupFlags& flags) {
  command.add_option("--config", flags.config, "Configuration file of the server")
      ->option_text("FILE");
  command
      .add_option("--store", flags.store, "Database of the server; default: store.file of --config")
      ->option_text("FILE");
}

void AddBackup(CLI::App& telemetry, Chosen& chosen, StoreOf store_of) {
  CLI::App* command = telemetry.add_subcommand("backup", "Copy the database of a running server");
  auto flags = std::make_shared<BackupFlags>(BackupFlags{telemetry});
  command->add_option("FILE", flags->file, "The copy; - is standard output")
      ->required()
      ->option_text("FILE");
  AddStoreFlags(*command, *flags);
  command->add_flag("--force", flags->force, "Replace FILE if it exists");
  command->footer(
      "The copy is as of one moment, and has all that a server needs to go on. To standard output\n"
      "it is written to the folder for temporary files ($TMPDIR) first.\n"
      "Examples:\n"
      "  nos telemetry backup backup.db --config telemetry.yaml\n"
      "  kubectl exec nos-telemetry-0 -- nos telemetry backup - --config /etc/nos/config.yaml > "
      "backup.db");
  RunWhenChosen(*command, chosen, "nos telemetry backup",
                [flags, store_of] { return RunBackup(*flags, store_of); });
}

void AddRestore(CLI::App& telemetry, Chosen& chosen, StoreOf store_of) {
  CLI::App* command = telemetry.add_subcommand(
      "restore", "Put a backup in the place of the database, while no server runs");
  auto flags = std::make_shared<BackupFlags>(BackupFlags{telemetry});
  command->add_option("FILE", flags->file, "The backup; - is standard input")
      ->required()
      ->option_text("FILE");
  AddStoreFlags(*command, *flags);
  command->footer(
      "The backup is verified first. The former database stays beside the new one, as\n"
      "DATABASE.before-TIME. A backup of an older version is migrated when the server starts.\n"
      "Example:\n"
      "  nos telemetry restore backup.db --config telemetry.yaml");
  RunWhenChosen(*command, chosen, "nos telemetry restore",
                [flags, store_of] { return RunRestore(*flags, store_of); });
}

void AddVerify(CLI::App& telemetry, Chosen& chosen, StoreOf store_of) {
  CLI::App* command =
      telemetry.add_subcommand("verify", "Look for damage in a database or a backup");
  auto flags = std::make_shared<BackupFlags>(BackupFlags{telemetry});
  command->add_option("FILE", flags->file, "Default: the database of --config or --store")
      ->option_text("[FILE]");
  AddStoreFlags(*command, *flags);
  command->add_option("-o,--output", flags->output, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
  command->footer(
      "Reads the whole file and changes nothing; a server may use it meanwhile.\n"
      "Exit codes: 0 no damage, 1 damage, 2 invalid flags.\n"
      "Examples:\n"
      "  nos telemetry verify backup.db\n"
      "  nos telemetry verify --config telemetry.yaml -o json");
  command->callback([&chosen, flags, store_of] {
    chosen.action = [flags, store_of] { return RunVerify(*flags, store_of); };
  });
}

}  // namespace

void AddBackupCommands(CLI::App& telemetry, Chosen& chosen, StoreOf store_of) {
  AddBackup(telemetry, chosen, store_of);
  AddRestore(telemetry, chosen, store_of);
  AddVerify(telemetry, chosen, store_of);
}

}  // namespace nos::cmd
