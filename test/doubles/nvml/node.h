// A node with doubled GPUs for tests: creates the state file, points the double at it, and lets a
// test read and change the true state while code under test runs, in this process or another.
//
//   NvmlNode node({{"gpus", JsonArray{{{"model", "A100-40GB"}}}}});
//   auto library = NvmlLibrary::Open(node.library()).value();
//   node.Fault({{"call", "nvmlGpuInstanceDestroy"}, {"error", 19}});
//   node.Edit([](Json& state) { ... });
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/json.h"

namespace nos::nvml_double {

class NvmlNode {
 public:
  // Sets NOS_NVML_DOUBLE_STATE of this process to a new file: at most one node per process.
  explicit NvmlNode(const Json& state);
  ~NvmlNode();
  NvmlNode(const NvmlNode&) = delete;
  NvmlNode& operator=(const NvmlNode&) = delete;

  static std::string library();
  static std::string old_library();
  static std::string nvidia_smi();
  const std::string& state_path() const { return path_; }

  Json Read() const;
  void Edit(const std::function<void(Json& state)>& change) const;
  void EditGpu(int gpu, const std::function<void(JsonObject& gpu)>& change) const;
  void Fault(const JsonObject& fault) const;
  void Event(const JsonObject& event) const;
  void ClearFaults() const;
  // From now on calls of these functions ("*": all) for the GPU do not return; -1: calls that
  // concern no GPU. They take effect when they are released.
  void Hang(int gpu, const std::vector<std::string>& calls) const;
  void Release(int gpu) const { Hang(gpu, {}); }
  // Waits for a call that hangs.
  void AwaitHanging(int gpu) const;
  // {"1g.5gb@0", "3g.20gb@4!"}: by start; "!" marks an instance without a compute instance.
  std::vector<std::string> Layout(int gpu) const;
  // Restarts the node: instances and compute modes vanish, lost GPUs are back, and MIG mode is the
  // pending one, or off on Hopper and later.
  void Reboot() const;

 private:
  std::string folder_, path_;
};

}  // namespace nos::nvml_double
