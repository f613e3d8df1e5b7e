#include "node.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "gpu/catalogue.h"
#include "state_file.h"

namespace nos::nvml_double {
namespace {

std::string NewFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "nos-nvml-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  return name;
}

}  // namespace

NvmlNode::NvmlNode(const Json& state) : folder_(NewFolder()), path_(folder_ + "/state.json") {
  Edit([&](Json& next) { next = state; });
  setenv("NOS_NVML_DOUBLE_STATE", path_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

NvmlNode::~NvmlNode() { std::filesystem::remove_all(folder_); }

std::string NvmlNode::library() { return NOS_NVML_DOUBLE; }
std::string NvmlNode::old_library() { return NOS_NVML_DOUBLE_OLD; }
std::string NvmlNode::nvidia_smi() { return NOS_NVIDIA_SMI_DOUBLE; }

Json NvmlNode::Read() const { return StateFile(path_).Read().value(); }

void NvmlNode::Edit(const std::function<void(Json& state)>& change) const {
  const StateFile file(path_);
  const Result<Json> before = file.Read();
  Json state = before.ok() ? *before : Json(JsonObject{});
  change(state);
  if (!file.Write(state).ok()) throw std::runtime_error("cannot write " + path_);
}

void NvmlNode::EditGpu(int gpu, const std::function<void(JsonObject& gpu)>& change) const {
  Edit([&](Json& state) {
    change(state.at("gpus").as_array().at(static_cast<size_t>(gpu)).as_object());
  });
}

void NvmlNode::Fault(const JsonObject& fault) const {
  Edit([&](Json& state) {
    JsonObject& root = state.as_object();
    if (!root.contains("faults")) root["faults"] = JsonArray{};
    root["faults"].as_array().push_back(fault);
  });
}

void NvmlNode::Event(const JsonObject& event) const {
  Edit([&](Json& state) {
    JsonObject& root = state.as_object();
    if (!root.contains("events")) root["events"] = JsonArray{};
    root["events"].as_array().push_back(event);
  });
}

void NvmlNode::ClearFaults() const {
  Edit([](Json& state) { state.as_object()["faults"] = JsonArray{}; });
}

void NvmlNode::Hang(int gpu, const std::vector<std::string>& calls) const {
  JsonArray names;
  for (const std::string& call : calls) names.push_back(Json(call));
  Edit([&](Json& state) {
    Json& of = gpu < 0 ? state : state.at("gpus").as_array().at(static_cast<size_t>(gpu));
    of.as_object()["hangs"] = std::move(names);
  });
}

void NvmlNode::AwaitHanging(int gpu) const {
  const auto hangs = [&] {
    const Json state = Read();
    const Json& of = gpu < 0 ? state : state.at("gpus").as_array().at(static_cast<size_t>(gpu));
    const JsonObject& json = of.as_object();
    return json.contains("hanging") && json.at("hanging").to_number<int64_t>() > 0;
  };
  while (!WaitForFile(path_, std::chrono::hours(1), hangs)) {
  }
}

std::vector<std::string> NvmlNode::Layout(int gpu) const {
  const Json state = Read();
  std::vector<std::pair<int64_t, std::string>> found;
  const JsonObject& of = state.at("gpus").as_array().at(static_cast<size_t>(gpu)).as_object();
  if (!of.contains("instances")) return {};
  for (const Json& instance : of.at("instances").as_array()) {
    const int64_t start = instance.at("start").to_number<int64_t>();
    const bool complete = !instance.at("computeInstances").as_array().empty();
    found.emplace_back(start, std::string(FindString(instance, "profile")) + "@" +
                                  std::to_string(start) + (complete ? "" : "!"));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> layout;
  layout.reserve(found.size());
  for (auto& [start, name] : found) layout.push_back(std::move(name));
  return layout;
}

void NvmlNode::Reboot() const {
  Edit([](Json& state) {
    for (Json& entry : state.at("gpus").as_array()) {
      JsonObject& now = entry.as_object();
      now["instances"] = JsonArray{};
      now["lost"] = false;
      now["computeMode"] = 0;
      const gpu::Model* model = gpu::Catalogue::Builtin().FindByName(FindString(entry, "model"));
      if (model != nullptr && model->architecture() != "Ampere") now["migPending"] = false;
      if (now.contains("migPending")) now["mig"] = now["migPending"];
    }
  });
}

}  // namespace nos::nvml_double
