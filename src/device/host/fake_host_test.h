// A host's file system below a temporary folder, with the files that a driver installs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "device/driver_files.h"

namespace nos::device {

class HostTest : public ::testing::Test {
 protected:
  HostTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-host-XXXXXX";
    root_ = mkdtemp(pattern.data());
    host_ = {root_ / "root", "/", root_ / "proc", root_ / "dev"};
    File("proc/devices",
         "Character devices:\n  1 mem\n195 nvidia\n235 nvidia-caps\n511 nvidia-uvm\n\n"
         "Block devices:\n  7 nvidia\n");
  }
  ~HostTest() override { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text = "") const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void Link(const std::string& path, const std::string& target) const {
    std::filesystem::create_symlink(target, root_ / path);
  }
  // Libraries and programs of a driver in this folder of the host.
  void Driver(const std::string& folder = "usr/lib/x86_64-linux-gnu") const {
    const std::string libraries = "root/" + folder + "/";
    for (const char* name : {"libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so"}) {
      File(libraries + name + ".550.54.15");
      Link(libraries + name + ".1", std::string(name) + ".550.54.15");
    }
    Link(libraries + "libcuda.so", "libcuda.so.1");
    File(libraries + "libc.so.6");
    File(libraries + "libnvidia-old.so.470.1");
    File("root/usr/bin/nvidia-smi");
  }
  // A GPU with MIG instances, as /proc lists it.
  void Gpu(const std::string& uuid, int minor) const {
    File("proc/driver/nvidia/gpus/0000:0" + std::to_string(minor) + ":00.0/information",
         "Model: \t\t NVIDIA A100\nGPU UUID: \t " + uuid + "\nDevice Minor: \t " +
             std::to_string(minor) + "\n");
  }
  void Instance(int gpu_minor, int id, int first_minor) const {
    const std::string folder = "proc/driver/nvidia/capabilities/gpu" + std::to_string(gpu_minor) +
                               "/mig/gi" + std::to_string(id) + "/";
    File(folder + "access", "DeviceFileMinor: " + std::to_string(first_minor) + "\n");
    File(folder + "ci0/access",
         "DeviceFileMinor: " + std::to_string(first_minor + 1) + "\nDeviceFileMode: 292\n");
  }

  std::filesystem::path root_;
  HostFolders host_;
};

}  // namespace nos::device
