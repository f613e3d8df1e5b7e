#include "telemetryreporter/dcgm_text.h"

#include <map>
#include <utility>

#include "base/text.h"

namespace nos::telemetry {
namespace {

constexpr std::string_view kActive = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
constexpr size_t kMaxUses = 4096;  // a node has some hundred
constexpr size_t kMaxLine = 8192;

// Removes a leading `name="value"`; false if the text does not start with one. In values \\, \" and
// \n are escapes (prometheus.io, "Exposition formats").
bool TakeLabel(std::string_view& text, std::string_view& name, std::string& value) {
  const size_t equals = text.find("=\"");
  if (equals == std::string_view::npos) return false;
  name = Trim(text.substr(0, equals));
  text.remove_prefix(equals + 2);
  value.clear();
  while (!text.empty() && text.front() != '"') {
    if (text.front() == '\\') text.remove_prefix(1);
    if (text.empty()) return false;
    value += text.front();
    text.remove_prefix(1);
  }
  if (text.empty()) return false;
  text.remove_prefix(1);
  if (text.starts_with(',')) text.remove_prefix(1);
  return true;
}

std::optional<DcgmUse> ReadLine(std::string_view line) {
  if (line.size() > kMaxLine || !line.starts_with(kActive)) return std::nullopt;
  line.remove_prefix(kActive.size());
  if (!line.starts_with('{')) return std::nullopt;
  line.remove_prefix(1);
  DcgmUse use;
  std::string_view name;
  std::string value;
  while (!line.starts_with('}')) {
    if (!TakeLabel(line, name, value)) return std::nullopt;
    if (name == "UUID") use.gpu = value;
    if (name != "GPU_I_ID" || value.empty()) continue;
    const auto id = ParseInt(value);
    if (!id || *id < 0 || *id > UINT32_MAX) return std::nullopt;
    use.instance = static_cast<uint32_t>(*id);
  }
  line.remove_prefix(1);
  line = Trim(line);
  const auto active = ParseDouble(line.substr(0, line.find(' ')));  // a timestamp may follow
  if (!active || !(*active >= 0 && *active <= 1.1) || use.gpu.empty()) return std::nullopt;
  use.active = *active;
  return use;
}

void Fill(const std::map<std::pair<std::string_view, std::optional<uint32_t>>, double>& uses,
          std::string_view gpu, std::optional<uint32_t> instance, device::Readings& readings) {
  const auto found = uses.find({gpu, instance});
  if (found == uses.end() || readings.Find(device::metric::kUtilization)) return;
  readings.Take(device::metric::kUtilization, found->second);
}

}  // namespace

std::vector<DcgmUse> ReadDcgmText(std::string_view text) {
  std::vector<DcgmUse> uses;
  while (!text.empty() && uses.size() < kMaxUses) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto use = ReadLine(text.substr(0, end))) uses.push_back(*std::move(use));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return uses;
}

void FillUtilization(const std::vector<DcgmUse>& uses, NodeSample& sample) {
  std::map<std::pair<std::string_view, std::optional<uint32_t>>, double> by_place;
  for (const DcgmUse& use : uses) by_place[{use.gpu, use.instance}] = use.active;
  for (SampledGpu& gpu : sample.gpus) {
    Fill(by_place, gpu.info.uuid, std::nullopt, gpu.readings);
    for (SampledInstance& sampled : gpu.instances) {
      Fill(by_place, gpu.info.uuid, sampled.instance.id, sampled.readings);
    }
  }
}

}  // namespace nos::telemetry
