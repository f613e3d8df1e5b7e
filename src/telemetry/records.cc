#include "telemetry/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "gpu/shares.h"

namespace nos::telemetry {
namespace {

// Maximum length of names from outside; Kubernetes allows 253 characters for most.
constexpr size_t kMaxName = 512;
constexpr size_t kMaxGpus = 64, kMaxInstances = 64, kMaxHolders = 256, kMaxProcesses = 1024;
constexpr size_t kMaxPresent = 1'000'000;
constexpr size_t kMaxReasons = kMaxMetrics;
constexpr size_t kMaxSharingModes = 16;

// Reads fields and collects faults; only the first fault is reported.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  std::string Name(std::string_view key, bool needed = true) {
    const Json* value = Find(object_, key);
    if (value == nullptr || value->is_null()) {
      if (needed) Fault(fmt::format("{} is missing", key));
      return {};
    }
    if (!value->is_string()) return Fault(fmt::format("{} must be a string", key));
    std::string text(View(value->get_string()));
    if (text.size() > kMaxName) return Fault(fmt::format("{} is too long", key));
    if (needed && text.empty()) return Fault(fmt::format("{} is empty", key));
    return text;
  }
  int64_t Integer(std::string_view key, int64_t least, int64_t most, int64_t fallback) {
    const Json* value = Find(object_, key);
    if (value == nullptr || value->is_null()) return fallback;
    const int64_t number = IntegerOr(object_, key, least - 1);
    if (number >= least && number <= most) return number;
    Fault(fmt::format("{} is no integer from {} to {}", key, least, most));
    return fallback;
  }
  std::vector<std::string> Names(std::string_view key, size_t most) {
    std::vector<std::string> names;
    const Json* value = Find(object_, key);
    if (value == nullptr || value->is_null()) return names;
    const bool list = value->is_array() && value->get_array().size() <= most;
    if (!list) Fault(fmt::format("{} is no list of at most {}", key, most));
    if (!list) return names;
    for (const Json& element : value->get_array()) {
      const bool name = element.is_string() && element.get_string().size() <= kMaxName;
      if (!name) Fault(fmt::format("{}: an element is no name", key));
      if (name) names.emplace_back(View(element.get_string()));
    }
    return names;
  }
  bool Flag(std::string_view key) const {
    const Json* value = Find(object_, key);
    return value != nullptr && value->is_bool() && value->get_bool();
  }
  // Visits each element of an array of objects.
  template <typename Visit>
  void Each(std::string_view key, size_t most, Visit visit) {
    const Json* value = Find(object_, key);
    if (value == nullptr || value->is_null()) return;
    if (!value->is_array() || value->get_array().size() > most) {
      Fault(fmt::format("{} is no list of at most {}", key, most));
      return;
    }
    for (const Json& element : value->get_array()) {
      Fields fields(element);
      if (!element.is_object()) fields.Fault("is no object");
      visit(fields);
      if (!fields.fault_.empty()) Fault(fmt::format("{}: {}", key, fields.fault_));
    }
  }
  std::string Fault(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
    return {};
  }
  const std::string& fault() const { return fault_; }
  const Json& object() const { return object_; }

 private:
  const Json& object_;
  std::string fault_;
};

std::vector<Holder> Holders(Fields& fields) {
  std::vector<Holder> holders;
  fields.Each("holders", kMaxHolders, [&](Fields& f) {
    holders.push_back({f.Name("namespace"), f.Name("pod"), f.Name("container", false)});
  });
  return holders;
}

Instance ReadInstance(Fields& f) {
  Instance instance;
  instance.id = f.Integer("id", 0, 1'000'000, 0);
  instance.uuid = f.Name("instance", false);
  instance.profile = f.Name("profile");
  instance.start = f.Integer("start", 0, 255, 0);
  instance.size = f.Integer("size", 1, gpu::kMaxShareGib, 1);
  instance.holders = Holders(f);
  return instance;
}

Gpu ReadGpu(Fields& f) {
  Gpu gpu;
  gpu.index = f.Integer("index", 0, 1'000'000, 0);
  gpu.uuid = f.Name("gpu");
  gpu.product = f.Name("product", false);
  gpu.memory = f.Integer("memory", 0, int64_t{1} << 40, 0);
  gpu.slots = f.Integer("slots", 0, gpu::kMaxSharedGib, 0);
  gpu.mig = f.Flag("mig");
  gpu.health = f.Name("health", false);
  f.Each("instances", kMaxInstances, [&](Fields& i) { gpu.instances.push_back(ReadInstance(i)); });
  gpu.holders = Holders(f);
  gpu.sharing_mode = f.Name("sharing_mode", false);
  // Records of older agents have only the old name.
  if (gpu.sharing_mode.empty()) gpu.sharing_mode = f.Name("way", false);
  gpu.switches = f.Names("switches", kMaxSharingModes);
  return gpu;
}

Layout ReadLayout(Fields& f) {
  Layout layout{f.Name("node"), f.Name("mode", false), {}};
  f.Each("gpus", kMaxGpus, [&](Fields& gpu) { layout.gpus.push_back(ReadGpu(gpu)); });
  return layout;
}

bool IsMetricName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Readings ReadReadings(Fields& f, std::string subject) {
  Readings readings{std::move(subject), {}, nullptr, nullptr};
  const Json* metrics = Find(f.object(), "metrics");
  if (metrics != nullptr && !metrics->is_object()) f.Fault("metrics is no object");
  if (metrics == nullptr || !metrics->is_object()) return readings;
  if (metrics->get_object().size() > kMaxMetrics) {
    f.Fault(fmt::format("metrics has more than {} members", kMaxMetrics));
    return readings;
  }
  for (const auto& [key, value] : metrics->get_object()) {
    const std::string_view name(key.data(), key.size());
    if (!IsMetricName(name)) {
      f.Fault(fmt::format("metrics: \"{}\" is no name of a metric", Shortened(name, 64)));
    } else if (value.is_number()) {
      readings.metrics.emplace_back(name, value.to_number<double>());
    } else if (!value.is_null()) {
      f.Fault(fmt::format("metrics: {} is no number", name));
    }
  }
  const Json* unmeasured = Find(f.object(), "unmeasured");
  if (unmeasured != nullptr && unmeasured->is_object() &&
      unmeasured->get_object().size() <= kMaxReasons) {
    readings.unmeasured = *unmeasured;
  }
  const Json* processes = Find(f.object(), "processes");
  if (processes != nullptr && processes->is_array() &&
      processes->get_array().size() <= kMaxProcesses) {
    readings.processes = *processes;
  }
  return readings;
}

Object ReadObject(Fields& f, Object::Kind kind) {
  Object object{kind, {}};
  if (kind == Object::Kind::kPod) {
    object.key = f.Name("uid");
    f.Name("namespace");
    f.Name("name");
    f.Name("state");
  } else if (kind == Object::Kind::kNode) {
    object.key = f.Name("node");
  } else if (kind == Object::Kind::kQuota) {
    const std::string type = f.Name("type");
    const std::string ns = f.Name("namespace", false);
    object.key = fmt::format("{}/{}/{}", type, ns, f.Name("name"));
  } else {
    object.key = f.Name("id");
    const bool of_namespace = kind == Object::Kind::kJob || kind == Object::Kind::kQueue;
    // A ClusterQueue has no namespace.
    if (of_namespace) f.Name("namespace", kind == Object::Kind::kJob);
    if (kind == Object::Kind::kPool) f.Name("name");
  }
  return object;
}

Happening ReadHappening(Fields& f, bool xid) {
  if (xid) return {"gpu/" + f.Name("gpu")};
  const Json* about = Find(f.object(), "object");
  if (about == nullptr || !about->is_object()) {
    f.Fault("object is missing");
    return {};
  }
  return {fmt::format("{}/{}/{}", Shortened(FindString(*about, "kind"), kMaxName),
                      Shortened(FindString(*about, "namespace"), kMaxName),
                      Shortened(FindString(*about, "name"), kMaxName))};
}

Removed ReadRemoved(Fields& f) {
  Removed removed{f.Name("what"), f.Name("id", false)};
  if (!removed.key.empty()) return removed;
  if (removed.what == "pod") {
    removed.key = f.Name("uid");
  } else if (removed.what == "node") {
    removed.key = f.Name("node");
  } else if (removed.what == "quota") {
    const std::string type = f.Name("type", false);
    const std::string ns = f.Name("namespace", false);
    removed.key = fmt::format("{}/{}/{}", type.empty() ? "ElasticQuota" : type, ns, f.Name("name"));
  } else if (removed.what == "gpu") {
    removed.key = f.Name("gpu");
  }
  return removed;
}

Present ReadPresent(Fields& f) {
  Present present{f.Name("what"), {}};
  const Json* ids = Find(f.object(), "ids");
  if (ids == nullptr || !ids->is_array() || ids->get_array().size() > kMaxPresent) {
    f.Fault(fmt::format("ids is no list of at most {}", kMaxPresent));
    return present;
  }
  for (const Json& id : ids->get_array()) {
    if (!id.is_string()) f.Fault("ids: an element is not a string");
    if (id.is_string()) present.keys.emplace(View(id.get_string()));
  }
  return present;
}

Status Interpret(Record& record) {
  static const std::map<std::string_view, Object::Kind> kObjects = {
      {"pod", Object::Kind::kPod},          {"node", Object::Kind::kNode},
      {"quota", Object::Kind::kQuota},      {"job", Object::Kind::kJob},
      {"queue", Object::Kind::kQueue},      {"pool", Object::Kind::kPool},
      {"decision", Object::Kind::kDecision}};
  Fields f(record.body);
  const std::string& kind = record.kind;
  if (kind == "gpu") {
    record.what = ReadReadings(f, "gpu/" + f.Name("gpu"));
  } else if (kind == "instance") {
    record.what = ReadReadings(f, "instance/" + f.Name("instance"));
  } else if (kind == "layout") {
    record.what = ReadLayout(f);
  } else if (const auto known = kObjects.find(kind); known != kObjects.end()) {
    record.what = ReadObject(f, known->second);
  } else if (kind == "event" || kind == "xid") {
    record.what = ReadHappening(f, kind == "xid");
  } else if (kind == "removed") {
    record.what = ReadRemoved(f);
  } else if (kind == "present") {
    record.what = ReadPresent(f);
  }
  return f.fault().empty() ? Status::Ok() : Invalid(kind + ": " + f.fault());
}

Result<Record> ReadHead(Json body) {
  if (!body.is_object()) return Invalid("a record is no object");
  Record record;
  record.kind = std::string(FindString(body, "kind"));
  record.at = IntegerOr(body, "at", -1);
  record.body = std::move(body);
  if (record.kind.empty() || record.kind.size() > 64) return Invalid("a record has no kind");
  if (record.at < 0) return Invalid(record.kind + ": at is no time in milliseconds");
  return record;
}

}  // namespace

JsonArray HoldersJson(const std::vector<Holder>& holders) {
  JsonArray array;
  for (const Holder& holder : holders) {
    array.push_back(
        {{"namespace", holder.ns}, {"pod", holder.pod}, {"container", holder.container}});
  }
  return array;
}

double NumberOr(const Json& object, std::string_view key, double fallback) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : fallback;
}

int64_t IntegerOr(const Json& object, std::string_view key, int64_t fallback) {
  const Json* value = Find(object, key);
  if (value == nullptr || !value->is_number()) return fallback;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return fallback;  // beyond int64_t
  const double number = value->get_double();
  return std::abs(number) < 9e15 ? std::llround(number) : fallback;
}

void EachRow(const Json& record, std::string_view key,
             FunctionRef<void(const JsonArray& row)> visit) {
  const Json* rows = Find(record, key);
  if (rows == nullptr || !rows->is_array()) return;
  for (const Json& row : rows->get_array()) {
    if (row.is_array() && !row.get_array().empty()) visit(row.get_array());
  }
}

void SetTime(Record& record, Millis at) {
  record.at = at;
  record.body.get_object()["at"] = at;
}

Result<Record> ReadRecord(Json body) {
  NOS_ASSIGN(Record record, ReadHead(std::move(body)));
  NOS_RETURN_IF_ERROR(Interpret(record));
  return record;
}

Json DerivedRecord(Millis at, const std::string& subject,
                   const std::vector<std::pair<std::string, double>>& metrics) {
  JsonObject values;
  for (const auto& [name, value] : metrics) values[name] = value;
  return {{"kind", "derived"}, {"at", at}, {"subject", subject}, {"metrics", std::move(values)}};
}

Result<Record> ReadDerivedRecord(Json body) {
  NOS_ASSIGN(Record record, ReadHead(std::move(body)));
  Fields f(record.body);
  record.what = ReadReadings(f, f.Name("subject"));
  if (!f.fault().empty()) return Invalid("derived: " + f.fault());
  return record;
}

Json LayoutRecord(Millis at, const Layout& layout) {
  JsonArray gpus;
  for (const Gpu& gpu : layout.gpus) {
    JsonArray instances;
    for (const Instance& instance : gpu.instances) {
      instances.push_back({{"id", instance.id},
                           {"instance", instance.uuid},
                           {"profile", instance.profile},
                           {"start", instance.start},
                           {"size", instance.size},
                           {"holders", HoldersJson(instance.holders)}});
    }
    gpus.push_back({{"index", gpu.index},
                    {"gpu", gpu.uuid},
                    {"product", gpu.product},
                    {"memory", gpu.memory},
                    {"slots", gpu.slots},
                    {"mig", gpu.mig},
                    {"health", gpu.health},
                    {"instances", std::move(instances)},
                    {"holders", HoldersJson(gpu.holders)},
                    {"sharing_mode", gpu.sharing_mode},
                    {"way", gpu.sharing_mode},  // the old name
                    {"switches", JsonArray(gpu.switches.begin(), gpu.switches.end())}});
  }
  return {{"kind", "layout"},
          {"at", at},
          {"node", layout.node},
          {"mode", layout.mode},
          {"gpus", std::move(gpus)}};
}

}  // namespace nos::telemetry
