#include "exports/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace nos::exports {
namespace {

using telemetry::Gpu, telemetry::Holder, telemetry::Layout;

constexpr size_t kMaxMadeUp = 100'000, kMaxNodes = 100'000;

std::string KeyOf(const std::string& cluster, std::string_view subject) {
  return fmt::format("{}\n{}", cluster, subject);
}

bool IsLabelName(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, fits) && (name[0] < '0' || name[0] > '9') &&
         !name.starts_with("__");
}

// Prometheus treats an empty label as missing.
void Add(Labels& labels, std::string name, std::string value) {
  if (!value.empty()) labels.emplace_back(std::move(name), std::move(value));
}

void AddHolder(Labels& labels, const std::vector<Holder>& holders) {
  if (holders.empty()) return;
  const Holder& first = holders.front();
  for (const Holder& other : holders) {
    if (other.ns != first.ns || other.pod != first.pod) return;
  }
  Add(labels, "namespace", first.ns);
  Add(labels, "pod", first.pod);
  if (holders.size() == 1) Add(labels, "container", first.container);
}

Labels LabelsOfGpu(const Layout& layout, const Gpu& gpu) {
  Labels labels;
  Add(labels, "UUID", gpu.uuid);
  Add(labels, "gpu", fmt::to_string(gpu.index));
  Add(labels, "modelName", gpu.product);
  Add(labels, "node", layout.node);
  return labels;
}

bool IsOfQuota(std::string_view kind) {
  return kind == telemetry::kQuotaSubject || kind == telemetry::kCompositeQuotaSubject;
}

// Labels of a subject that is in no layout: "quota/ns/name/nvidia.com/gpu".
Labels LabelsOfSubject(std::string_view subject) {
  Labels labels;
  const size_t slash = subject.find('/');
  const std::string_view kind = subject.substr(0, slash);
  std::string_view rest = slash == subject.npos ? std::string_view() : subject.substr(slash + 1);
  if (IsOfQuota(kind)) {
    const bool composite = kind == telemetry::kCompositeQuotaSubject;
    Add(labels, "type", std::string(composite ? telemetry::kCompositeQuota : "ElasticQuota"));
    for (const char* name : {"namespace", "quota"}) {
      const size_t end = std::min(rest.find('/'), rest.size());
      Add(labels, name, std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    Add(labels, "resource", std::string(rest));
  } else if (kind == "gpu") {
    Add(labels, "UUID", std::string(rest));
  } else {
    Add(labels,
        kind == "instance" ? "mig"
        : kind == "node"   ? "node"
                           : "subject",
        std::string(rest));
  }
  return labels;
}

}  // namespace

Result<Labels> ParseLabels(std::string_view text) {
  Labels labels;
  for (const std::string_view part : Split(text, ',')) {
    const std::string_view label = Trim(part);
    if (label.empty() && Trim(text).empty()) break;
    const size_t equals = std::min(label.find('='), label.size());
    const std::string name(Trim(label.substr(0, equals)));
    if (!IsLabelName(name) || equals >= label.size()) {
      return Invalid(fmt::format("\"{}\" is not a label: expected name=value,name=value", label));
    }
    Add(labels, name, std::string(Trim(label.substr(equals + 1))));
  }
  static constexpr std::array kOurs = {
      "UUID", "cluster", "container", "gpu",     "mig",  "modelName", "namespace",    "node",
      "pod",  "quota",   "resource",  "subject", "type", "GPU_I_ID",  "GPU_I_PROFILE"};
  std::ranges::sort(labels);
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool twice = i > 0 && labels[i].first == labels[i - 1].first;
    if (twice || std::ranges::find(kOurs, labels[i].first) != kOurs.end()) {
      return Invalid(fmt::format("the label {} is {}", labels[i].first,
                                 twice ? "given twice" : "set by nos itself"));
    }
  }
  return labels;
}

MetricFilter::MetricFilter(std::string_view text) {
  for (const std::string_view name : Split(text, ',')) {
    if (!Trim(name).empty()) names_.emplace_back(Trim(name));
  }
}

bool MetricFilter::Takes(std::string_view name) const {
  return names_.empty() || std::ranges::any_of(names_, [&](std::string_view wanted) {
           if (!wanted.ends_with('*')) return name == wanted;
           wanted.remove_suffix(1);
           return name.starts_with(wanted);
         });
}

std::string SeriesNames::MetricName(std::string_view subject, std::string_view metric) {
  std::string_view kind = subject.substr(0, subject.find('/'));
  if (IsOfQuota(kind)) kind = telemetry::kQuotaSubject;  // the type of the quota is a label
  std::string name = fmt::format("nos_{}_{}", kind, metric);
  for (char& c : name) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!fits) c = '_';
  }
  return name;
}

void SeriesNames::Complete(const std::string& cluster, Labels& labels) const {
  Add(labels, "cluster", cluster);
  labels.insert(labels.end(), further_.begin(), further_.end());
  std::ranges::sort(labels);
}

void SeriesNames::Put(const std::string& cluster, const std::string& subject, Labels labels) {
  Complete(cluster, labels);
  Known& known = known_[KeyOf(cluster, subject)];
  if (!known.labels.empty() && !known.layout) --made_up_;
  known = {std::move(labels), true};
}

void SeriesNames::Follow(const std::string& cluster, const Layout& layout) {
  if (of_nodes_.size() >= kMaxNodes) {
    known_.clear();
    of_nodes_.clear();
    made_up_ = 0;
  }
  std::vector<std::string>& keys = of_nodes_[KeyOf(cluster, layout.node)];
  for (const std::string& key : keys) known_.erase(key);
  keys.clear();
  for (const Gpu& gpu : layout.gpus) {
    const Labels of_gpu = LabelsOfGpu(layout, gpu);
    Labels whole = of_gpu;
    AddHolder(whole, gpu.holders);
    Put(cluster, "gpu/" + gpu.uuid, std::move(whole));
    keys.push_back(KeyOf(cluster, "gpu/" + gpu.uuid));
    for (const telemetry::Instance& instance : gpu.instances) {
      Labels labels = of_gpu;
      Add(labels, "GPU_I_ID", fmt::to_string(instance.id));
      Add(labels, "GPU_I_PROFILE", instance.profile);
      Add(labels, "mig", instance.uuid);
      AddHolder(labels, instance.holders);
      Put(cluster, "instance/" + instance.uuid, std::move(labels));
      keys.push_back(KeyOf(cluster, "instance/" + instance.uuid));
    }
  }
}

void SeriesNames::Follow(const std::string& cluster, const telemetryserver::State& state) {
  for (const auto& [name, node] : state.nodes()) Follow(cluster, node.layout);
}

void SeriesNames::Follow(const telemetry::Envelope& envelope) {
  for (const telemetry::Record& record : envelope.records) {
    const auto* layout = std::get_if<Layout>(&record.what);
    if (layout != nullptr) Follow(envelope.cluster, *layout);
  }
}

const Labels& SeriesNames::LabelsOf(const std::string& cluster, const std::string& subject) {
  const std::string key = KeyOf(cluster, subject);
  if (const auto found = known_.find(key); found != known_.end()) return found->second.labels;
  if (++made_up_ > kMaxMadeUp) {
    std::erase_if(known_, [](const auto& entry) { return !entry.second.layout; });
    made_up_ = 1;
  }
  Labels labels = LabelsOfSubject(subject);
  Complete(cluster, labels);
  return known_.emplace(key, Known{std::move(labels), false}).first->second.labels;
}

}  // namespace nos::exports
