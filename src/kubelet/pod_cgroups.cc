#include "kubelet/pod_cgroups.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace nos::kubelet {
namespace {

namespace fs = std::filesystem;

// Folders between the root and that of all pods: a controller (version 1), and the parent that a
// kubelet may have been given (--cgroup-root).
constexpr int kMaxParents = 3;

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (std::error_code unknown; entry->is_directory(unknown) && !entry->is_symlink(unknown)) {
      folders.push_back(entry->path());
    }
  }
  return folders;
}

// The last part of a name: the systemd driver repeats the names of the parents and adds ".slice"
// ("kubepods-burstable-pod<uid>.slice"); cgroupfs does not ("pod<uid>"). Source: kubernetes
// pkg/kubelet/cm/cgroup_manager_linux.go, ToSystemd and ToCgroupfs.
std::string OwnName(const fs::path& folder) {
  constexpr std::string_view kSlice = ".slice";
  std::string name = folder.filename().string();
  if (!name.ends_with(kSlice)) return name;
  name.resize(name.size() - kSlice.size());
  name.erase(0, name.rfind('-') + 1);  // npos + 1 is 0
  std::ranges::replace(name, '_', '-');
  return name;
}

std::optional<std::string> PodUid(const fs::path& folder) {
  constexpr std::string_view kPod = "pod";
  const std::string name = OwnName(folder);
  if (!name.starts_with(kPod) || name.size() == kPod.size()) return std::nullopt;
  return name.substr(kPod.size());
}

// The folders of all pods: one, or with version 1 one of each controller.
void FindPodsFolders(const fs::path& folder, int deeper, std::vector<fs::path>& found) {
  for (const fs::path& child : FoldersIn(folder)) {
    if (OwnName(child) == "kubepods") {
      found.push_back(child);
    } else if (deeper > 0) {
      FindPodsFolders(child, deeper - 1, found);
    }
  }
}

bool HasProcess(const fs::path& cgroup) {
  if (std::ifstream events(cgroup / "cgroup.events"); events) {  // version 2, with all descendants
    std::string key, value;
    while (events >> key >> value) {
      if (key == "populated") return value != "0";
    }
  }
  if (std::ifstream processes(cgroup / "cgroup.procs"); processes && processes.peek() >= 0) {
    return true;
  }
  return std::ranges::any_of(FoldersIn(cgroup), HasProcess);
}

}  // namespace

Result<std::map<std::string, bool>> CgroupFolder::Read() {
  std::vector<fs::path> all;
  FindPodsFolders(root_, kMaxParents, all);
  if (all.empty()) return Status(Code::kNotFound, "no cgroup of pods in " + root_);
  std::map<std::string, bool> pods;
  const auto add = [&](const fs::path& folder) {
    const std::optional<std::string> uid = PodUid(folder);
    if (uid) pods[*uid] |= HasProcess(folder);
    return uid.has_value();
  };
  for (const fs::path& folder : all) {
    for (const fs::path& child : FoldersIn(folder)) {
      if (add(child)) continue;
      for (const fs::path& pod : FoldersIn(child)) add(pod);  // burstable, besteffort
    }
  }
  return pods;
}

}  // namespace nos::kubelet
