// A disk below SQLite that fails and loses power, for tests: a VFS over the real one.
//
//   FaultDisk disk;                        // every database opened from now on is on it
//   disk.FailAt(17, FaultDisk::Fault::kSyncFails);
//   ...
//   disk.CutPower();                       // every operation fails from here on
//   recorder.reset();                      // nothing is open any more
//   disk.Restart(random);                  // the files are now what a real disk may have kept
//
// Writes and truncations reach the disk with the next sync of their file. Restart keeps any
// part of the writes that were not synced, by sectors of 512 bytes. A failed sync loses some of
// them for good, although reads show them: Linux marks such pages as clean, so that the next sync
// succeeds without them. A file that was never synced may be absent after Restart, a file that was
// deleted may be there.
//
// Databases have to be closed before it ends. Thread-safe. At most one instance at a time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

struct sqlite3_file;
struct sqlite3_vfs;

namespace nos::telemetryserver {

class FaultDisk {
 public:
  enum class Fault {
    kWriteFails,  // EIO: nothing is written
    kShortWrite,  // a part is written, then the disk is full
    kSyncFails,   // EIO: the writes since the last sync are lost, or some of them
    kPowerCut,
  };

  FaultDisk();
  ~FaultDisk();
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  // Writes, truncations and syncs so far.
  int64_t operations() const;
  // Operations number `first` to `first + count - 1` fail, counted from 0. kSyncFails fails the
  // first sync from there on, the others the first write.
  void FailAt(int64_t first, Fault fault, int64_t count = 1);
  bool CutOff() const;
  void CutPower();
  // REQUIRES: no file is open.
  void Restart(Random& random);

 private:
  struct Change {
    int64_t offset = 0;  // of the bytes; or the new size
    std::optional<std::string> bytes;
  };
  struct File {
    std::string durable;
    bool exists = false;  // on disk: it was synced since it was created
    bool deleted = false;
    std::vector<Change> pending;
  };
  struct Open;   // a sqlite3_file
  struct Calls;  // the functions that SQLite calls

  // Applies a part of the pending changes to the durable content.
  static void KeepSome(File& file, Random& random);
  static void Apply(std::string& content, const Change& change);
  void Created(const std::string& path, bool existed);
  // Returns the fault of this operation, if any. REQUIRES: the mutex is held.
  std::optional<Fault> Next(bool is_sync);

  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  int64_t operations_ = 0, first_ = -1, left_ = 0;
  Fault fault_ = Fault::kWriteFails;
  bool cut_off_ = false;
  Random random_{1};
  sqlite3_vfs* real_ = nullptr;
  sqlite3_vfs* own_ = nullptr;
};

}  // namespace nos::telemetryserver
