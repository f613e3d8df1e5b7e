#include "dra/placement/nvidia.h"

#include <charconv>
#include <string_view>

#include "dra/gpu_driver.h"

namespace nos::dra {
namespace {

// Any account that may write ResourceSlices may name products.
constexpr size_t kMaxProducts = 256;

// The attributes that are read. Names may be written with the driver's domain.
struct Texts {
  Name type, uuid, parent, product, profile;
};

Texts TextsOf(const Device& device, std::string_view driver) {
  Texts texts;
  for (const auto& [name, value] : *device.attributes) {
    if (value.type != Attribute::Type::kString || value.list) continue;
    const std::string_view plain = PlainAttribute(name.str(), driver);
    if (plain == "type") texts.type = value.text;
    if (plain == "uuid") texts.uuid = value.text;
    if (plain == "parentUUID") texts.parent = value.text;
    if (plain == "productName") texts.product = value.text;
    if (plain == "profile") texts.profile = value.text;
  }
  return texts;
}

// The number behind the last hyphen.
std::optional<uint8_t> StartOf(std::string_view name) {
  (void)TakeSharing(name);
  const size_t hyphen = name.rfind('-');
  if (hyphen == std::string_view::npos || name.find("-mig-") == std::string_view::npos) return {};
  const std::string_view digits = name.substr(hyphen + 1);
  uint8_t start = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), start);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return start;
}

}  // namespace

std::optional<GpuDevice> GpuReader::Read(const ResourceSlice& slice, const Device& device) {
  static const Name kGpu("gpu"), kMig("mig"), kMps(kMpsType), kTimeSlices(kTimeSlicesType);
  if (!IsGpuDriver(slice.driver.str())) return {};
  const Texts texts = TextsOf(device, slice.driver.str());
  const bool shared =
      slice.driver.str() == kNosDriver && (texts.type == kMps || texts.type == kTimeSlices);
  // Claims share a GPU, or an instance, which has a profile.
  const bool mig = texts.type == kMig || (shared && !texts.profile.empty());
  if (!mig && !shared && texts.type != kGpu) return {};
  GpuDevice read;
  read.gpu = mig ? texts.parent : texts.uuid;
  read.model = ModelOf(texts.product);
  if (read.gpu.empty() || read.model == nullptr) return {};
  if (!mig) {
    read.kind = GpuDevice::Kind::kWhole;
    return read;
  }
  const auto profile = read.model->FindProfile(texts.profile.str());
  const auto start = StartOf(device.name.str());
  if (!profile || !start) return read;
  read.placement = {*profile, *start};
  if (read.model->layouts().Find(read.placement)) read.kind = GpuDevice::Kind::kInstance;
  return read;
}

const gpu::Model* GpuReader::ModelOf(const Name& product) {
  if (product.empty()) return nullptr;
  if (models_.size() >= kMaxProducts && !models_.contains(product)) models_.clear();
  const auto [found, added] = models_.try_emplace(product, nullptr);
  if (!added) return found->second;
  const gpu::Model* model = catalogue_.FindByProduct(product.str());
  if (model != nullptr && !model->counted()) found->second = model;
  return found->second;
}

const GpuRule& GpuReader::RuleOf(const gpu::Model& model) {
  std::unique_ptr<const GpuRule>& rule = rules_[&model];
  if (rule == nullptr) {
    rule = std::make_unique<const GpuRule>(GpuRule{model, gpu::Fragmentation(model)});
  }
  return *rule;
}

}  // namespace nos::dra
