// What reaches a daemon from outside: signals that ask it to end, and files that change. One thread
// waits for both.
//
//   OutsideEvents events({config.catalogue_file}, [&] { bell.Ring(); });
//   while (!events.StopAsked()) { ...; if (events.TakeFilesChanged()) Reload(); }
//
// SIGTERM and SIGINT ask to end; the second one ends the process at once. SIGHUP counts as a change
// of the files, SIGPIPE is ignored. Make it before other threads: they take over that these signals
// are blocked. One at a time.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/folder_watch.h"

namespace nos::cmd {

class OutsideEvents {
 public:
  // `wake` is called on the thread when StopAsked or TakeFilesChanged has something new. Files are
  // looked at when anything in their folders changes, for volumes of ConfigMaps swap a link there;
  // they count as changed when what they say does.
  OutsideEvents(const std::vector<std::string>& files, std::function<void()> wake);
  ~OutsideEvents();
  OutsideEvents(const OutsideEvents&) = delete;
  OutsideEvents& operator=(const OutsideEvents&) = delete;

  bool StopAsked() const { return stop_asked_; }
  // Whether that was so since the last call.
  bool TakeFilesChanged() { return files_changed_.exchange(false); }

 private:
  void Run();
  void OnSignals();
  // What the files say; of those that cannot be read, nothing.
  using Contents = std::vector<std::optional<std::string>>;
  Contents Read() const;

  const std::vector<std::string> files_;
  const std::function<void()> wake_;
  std::atomic<bool> stop_asked_{false}, files_changed_{false};
  UniqueFd signals_;
  std::vector<FolderWatch> folders_;
  Contents contents_;  // since the files were looked at last
  WakeUp end_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::cmd
