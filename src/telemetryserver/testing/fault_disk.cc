#include "telemetryserver/testing/fault_disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>

namespace nos::telemetryserver {
namespace {

constexpr int64_t kSector = 512;

bool IsShared(const std::string& path) { return path.ends_with("-shm"); }

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

// SQLite allocates szOsFile bytes: this, and behind it the file of the real VFS.
struct FaultDisk::Open {
  sqlite3_file base;
  FaultDisk* disk;
  std::string* path;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

struct FaultDisk::Calls {
  static FaultDisk& DiskOf(sqlite3_vfs* vfs) { return *static_cast<FaultDisk*>(vfs->pAppData); }
  static Open& Of(sqlite3_file* file) { return *reinterpret_cast<Open*>(file); }
  static const sqlite3_io_methods& Real(sqlite3_file* file) { return *Of(file).real()->pMethods; }

  static int Close(sqlite3_file* file) {
    delete Of(file).path;
    return Real(file).xClose(Of(file).real());
  }
  static int Read(sqlite3_file* file, void* to, int count, sqlite3_int64 offset) {
    if (Of(file).disk->CutOff()) return SQLITE_IOERR_READ;
    return Real(file).xRead(Of(file).real(), to, count, offset);
  }
  static int Write(sqlite3_file* file, const void* from, int count, sqlite3_int64 offset) {
    FaultDisk& disk = *Of(file).disk;
    const std::scoped_lock lock(disk.mutex_);
    const auto fault = disk.Next(false);
    if (disk.cut_off_ || fault == Fault::kWriteFails) return SQLITE_IOERR_WRITE;
    const int written = fault == Fault::kShortWrite ? count / 2 : count;
    disk.files_[*Of(file).path].pending.push_back(
        {offset, std::string(static_cast<const char*>(from), static_cast<size_t>(written))});
    const int result = Real(file).xWrite(Of(file).real(), from, written, offset);
    return result == SQLITE_OK && fault ? SQLITE_FULL : result;
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    FaultDisk& disk = *Of(file).disk;
    const std::scoped_lock lock(disk.mutex_);
    if (disk.Next(false) || disk.cut_off_) return SQLITE_IOERR_TRUNCATE;
    disk.files_[*Of(file).path].pending.push_back({size, std::nullopt});
    return Real(file).xTruncate(Of(file).real(), size);
  }
  static int Sync(sqlite3_file* file, int) {
    FaultDisk& disk = *Of(file).disk;
    const std::scoped_lock lock(disk.mutex_);
    const auto fault = disk.Next(true);
    if (disk.cut_off_) return SQLITE_IOERR_FSYNC;
    File& of = disk.files_[*Of(file).path];
    if (fault) {
      KeepSome(of, disk.random_);
      return SQLITE_IOERR_FSYNC;
    }
    for (const Change& change : of.pending) Apply(of.durable, change);
    of.pending.clear();
    if (!of.exists) {
      // SQLite syncs the folder with a new file, and with it the deletions before.
      std::erase_if(disk.files_, [](const auto& other) { return other.second.deleted; });
      of.exists = true;
    }
    return SQLITE_OK;
  }
  static int FileSize(sqlite3_file* file, sqlite3_int64* size) {
    return Real(file).xFileSize(Of(file).real(), size);
  }
  static int Lock(sqlite3_file* file, int level) {
    return Real(file).xLock(Of(file).real(), level);
  }
  static int Unlock(sqlite3_file* file, int level) {
    return Real(file).xUnlock(Of(file).real(), level);
  }
  static int CheckReservedLock(sqlite3_file* file, int* held) {
    return Real(file).xCheckReservedLock(Of(file).real(), held);
  }
  static int FileControl(sqlite3_file* file, int what, void* argument) {
    return Real(file).xFileControl(Of(file).real(), what, argument);
  }
  static int SectorSize(sqlite3_file* file) { return Real(file).xSectorSize(Of(file).real()); }
  static int Characteristics(sqlite3_file* file) {
    return Real(file).xDeviceCharacteristics(Of(file).real());
  }
  static int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** to) {
    return Real(file).xShmMap(Of(file).real(), page, size, extend, to);
  }
  static int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
    return Real(file).xShmLock(Of(file).real(), offset, count, flags);
  }
  static void ShmBarrier(sqlite3_file* file) { Real(file).xShmBarrier(Of(file).real()); }
  static int ShmUnmap(sqlite3_file* file, int remove) {
    return Real(file).xShmUnmap(Of(file).real(), remove);
  }

  static int OpenFile(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
                      int* out_flags) {
    static const sqlite3_io_methods methods = {2,
                                               Close,
                                               Read,
                                               Write,
                                               Truncate,
                                               Sync,
                                               FileSize,
                                               Lock,
                                               Unlock,
                                               CheckReservedLock,
                                               FileControl,
                                               SectorSize,
                                               Characteristics,
                                               ShmMap,
                                               ShmLock,
                                               ShmBarrier,
                                               ShmUnmap,
                                               nullptr,
                                               nullptr};
    FaultDisk& disk = DiskOf(vfs);
    Open& open = *new (file) Open{{nullptr}, &disk, nullptr};
    if (disk.CutOff()) return SQLITE_CANTOPEN;
    const std::string path = name == nullptr ? "" : name;
    const bool existed = std::filesystem::exists(path);
    const int result = disk.real_->xOpen(disk.real_, name, open.real(), flags, out_flags);
    if (result != SQLITE_OK) return result;
    open.path = new std::string(path);
    open.base.pMethods = &methods;
    disk.Created(path, existed);
    return SQLITE_OK;
  }
  static int Delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    FaultDisk& disk = DiskOf(vfs);
    const std::scoped_lock lock(disk.mutex_);
    if (disk.cut_off_) return SQLITE_IOERR_DELETE;
    const auto found = disk.files_.find(name);
    if (found != disk.files_.end()) found->second.deleted = true;
    if (sync_folder != 0) {
      std::erase_if(disk.files_, [](const auto& other) { return other.second.deleted; });
    }
    return disk.real_->xDelete(disk.real_, name, 0);
  }
  static int Access(sqlite3_vfs* vfs, const char* name, int flags, int* result) {
    sqlite3_vfs* const real = DiskOf(vfs).real_;
    return real->xAccess(real, name, flags, result);
  }
  static int FullPathname(sqlite3_vfs* vfs, const char* name, int size, char* out) {
    sqlite3_vfs* const real = DiskOf(vfs).real_;
    return real->xFullPathname(real, name, size, out);
  }
};

FaultDisk::FaultDisk() : real_(sqlite3_vfs_find(nullptr)), own_(new sqlite3_vfs(*real_)) {
  own_->iVersion = 1;
  own_->szOsFile = static_cast<int>(sizeof(Open)) + real_->szOsFile;
  own_->zName = "nos-fault-disk";
  own_->pNext = nullptr;
  own_->pAppData = this;
  own_->xOpen = Calls::OpenFile;
  own_->xDelete = Calls::Delete;
  own_->xAccess = Calls::Access;
  own_->xFullPathname = Calls::FullPathname;
  sqlite3_vfs_register(own_, 1);
}

FaultDisk::~FaultDisk() {
  sqlite3_vfs_unregister(own_);
  sqlite3_vfs_register(real_, 1);
  delete own_;
}

int64_t FaultDisk::operations() const {
  const std::scoped_lock lock(mutex_);
  return operations_;
}

void FaultDisk::FailAt(int64_t first, Fault fault, int64_t count) {
  const std::scoped_lock lock(mutex_);
  first_ = first;
  fault_ = fault;
  left_ = count;
}

bool FaultDisk::CutOff() const {
  const std::scoped_lock lock(mutex_);
  return cut_off_;
}

void FaultDisk::CutPower() {
  const std::scoped_lock lock(mutex_);
  cut_off_ = true;
}

std::optional<FaultDisk::Fault> FaultDisk::Next(bool is_sync) {
  const int64_t number = operations_++;
  if (first_ < 0 || number < first_ || left_ == 0) return std::nullopt;
  if (fault_ == Fault::kPowerCut) {
    cut_off_ = true;
    return fault_;
  }
  if (is_sync != (fault_ == Fault::kSyncFails)) return std::nullopt;
  --left_;
  return fault_;
}

void FaultDisk::Created(const std::string& path, bool existed) {
  const std::scoped_lock lock(mutex_);
  const auto [at, added] = files_.try_emplace(path);
  File& file = at->second;
  if (added && existed) {  // it was there before this disk
    file.durable = Content(path);
    file.exists = true;
  } else if (file.deleted) {
    file = {};
  }
}

void FaultDisk::Apply(std::string& content, const Change& change) {
  const auto offset = static_cast<size_t>(change.offset);
  if (!change.bytes) {
    content.resize(std::min(content.size(), offset));
    return;
  }
  content.resize(std::max(content.size(), offset + change.bytes->size()));
  std::memcpy(content.data() + offset, change.bytes->data(), change.bytes->size());
}

// All, none, or any sectors of them: each has its turn.
void FaultDisk::KeepSome(File& file, Random& random) {
  const uint64_t kind = random.Below(4);
  for (const Change& change : std::exchange(file.pending, {})) {
    if (!change.bytes) {
      if (kind == 0 || (kind > 1 && random.Below(2) == 0)) Apply(file.durable, change);
      continue;
    }
    for (int64_t at = 0; at < static_cast<int64_t>(change.bytes->size());) {
      const int64_t end = std::min(static_cast<int64_t>(change.bytes->size()),
                                   at + kSector - (change.offset + at) % kSector);
      if (kind == 0 || (kind > 1 && random.Below(2) == 0)) {
        Apply(file.durable,
              {change.offset + at,
               change.bytes->substr(static_cast<size_t>(at), static_cast<size_t>(end - at))});
      }
      at = end;
    }
  }
}

void FaultDisk::Restart(Random& random) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> paths;
  for (auto& [path, file] : files_) {
    if (path.empty() || IsShared(path)) continue;
    KeepSome(file, random);
    const bool there =
        (file.exists || random.Below(2) == 0) && (!file.deleted || random.Below(2) == 0);
    std::error_code ignored;
    std::filesystem::remove(path + "-shm", ignored);
    if (there) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << file.durable;
    } else {
      std::filesystem::remove(path, ignored);
    }
  }
  files_.clear();
  first_ = -1;
  cut_off_ = false;
}

}  // namespace nos::telemetryserver
