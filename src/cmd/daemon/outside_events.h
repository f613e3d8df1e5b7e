// Shutdown signals and file changes, the external events of a daemon. One thread waits for both.
//
//   OutsideEvents events({config.catalogue_file}, [&] { bell.Ring(); });
//   while (!events.StopAsked()) { ...; if (events.TakeFilesChanged()) Reload(); }
//
// SIGTERM and SIGINT request shutdown; a second one ends the process at once. SIGHUP counts as a
// change of the files. SIGPIPE is ignored. Construct it before other threads: they inherit the mask
// that blocks these signals. At most one instance at a time.
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
  // `wake` is called on the event thread when StopAsked or TakeFilesChanged has a new result. Files
  // are compared whenever their folder changes, because ConfigMap volumes swap a symbolic link
  // there. A file counts as changed only if its content differs.
  OutsideEvents(const std::vector<std::string>& files, std::function<void()> wake);
  ~OutsideEvents();
  OutsideEvents(const OutsideEvents&) = delete;
  OutsideEvents& operator=(const OutsideEvents&) = delete;

  bool StopAsked() const { return stop_asked_; }
  // True if a file changed since the last call.
  bool TakeFilesChanged() { return files_changed_.exchange(false); }

 private:
  void Run();
  void OnSignals();
  // Contents of the files; nullopt for a file that cannot be read.
  using Contents = std::vector<std::optional<std::string>>;
  Contents Read() const;

  const std::vector<std::string> files_;
  const std::function<void()> wake_;
  std::atomic<bool> stop_asked_{false}, files_changed_{false};
  UniqueFd signals_;
  std::vector<FolderWatch> folders_;
  Contents contents_;  // at the last comparison
  WakeUp end_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::cmd
