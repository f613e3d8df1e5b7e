#include "cmd/daemon/outside_events.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace nos::cmd {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

std::vector<FolderWatch> WatchFoldersOf(const std::vector<std::string>& files) {
  std::set<std::string> folders;
  for (const std::string& file : files) {
    if (file.empty()) continue;
    const std::string folder = std::filesystem::path(file).parent_path().string();
    folders.insert(folder.empty() ? "." : folder);
  }
  std::vector<FolderWatch> watches;
  for (const std::string& folder : folders) {
    FolderWatch& watch = watches.emplace_back(folder);
    if (const Status watched = watch.Refresh(); !watched.ok()) {
      Log(LogLevel::kWarn, "failed to watch folder",
          {{"folder", folder}, {"error", watched.message()}});
    }
  }
  return watches;
}

}  // namespace

OutsideEvents::OutsideEvents(const std::vector<std::string>& files, std::function<void()> wake)
    : files_(files), wake_(std::move(wake)), folders_(WatchFoldersOf(files)), contents_(Read()) {
  const sigset_t set = Watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  thread_ = std::thread([this] { Run(); });
}

OutsideEvents::~OutsideEvents() {
  end_.Signal();
  thread_.join();
  const sigset_t set = Watched();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
}

void OutsideEvents::Run() {
  std::vector<pollfd> fds{{end_.fd(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  for (const FolderWatch& folder : folders_) fds.push_back({folder.fd(), POLLIN, 0});
  for (;;) {
    poll(fds.data(), fds.size(), -1);
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0) OnSignals();
    for (size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      (void)folders_[i - 2].Refresh();
      Contents now = Read();
      if (now != std::exchange(contents_, now)) files_changed_ = true;
    }
    wake_();
  }
}

OutsideEvents::Contents OutsideEvents::Read() const {
  Contents contents;
  for (const std::string& file : files_) {
    Result<std::string> text = ReadFile(file);
    contents.push_back(text.ok() ? std::optional(std::move(text).value()) : std::nullopt);
  }
  return contents;
}

void OutsideEvents::OnSignals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGHUP) {
      files_changed_ = true;
      continue;
    }
    if (!stop_asked_.exchange(true)) continue;
    std::signal(signal, SIG_DFL);
    const sigset_t set = Watched();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    raise(signal);
  }
}

}  // namespace nos::cmd
