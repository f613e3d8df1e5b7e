#include "gpu/catalogue_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "base/text.h"

namespace nos::gpu {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxEntries = 10'000;

// Never leaves this file; FileReader reports it like the exceptions of yaml-cpp.
struct Refused {
  std::string what;
};

[[noreturn]] void Refuse(std::string what) { throw Refused{std::move(what)}; }

void Require(const Status& status) {
  if (!status.ok()) Refuse(status.message());
}

// Runs `read` for one entry and returns its error.
Status Guarded(const std::function<void()>& read) {
  try {
    read();
    return Status::Ok();
  } catch (const Refused& refused) {
    return Invalid(refused.what);
  } catch (const YAML::Exception& e) {
    return Invalid("line " + std::to_string(e.mark.line + 1) + ": " + e.msg);
  }
}

void CheckKeys(const YAML::Node& map, std::initializer_list<std::string_view> known) {
  if (!map.IsMap()) Refuse("expected a mapping");
  for (const auto& entry : map) {
    const std::string& key = entry.first.Scalar();
    if (std::ranges::find(known, key) == known.end()) Refuse("unknown key \"" + key + "\"");
  }
}

std::string Text(const YAML::Node& map, const char* key) {
  const YAML::Node value = map[key];
  if (!value) return {};
  if (!value.IsScalar() || value.Scalar().size() > 200)
    Refuse(std::string(key) + ": expected text");
  return value.Scalar();
}

std::vector<std::string> Texts(const YAML::Node& map, const char* key) {
  std::vector<std::string> texts;
  const YAML::Node list = map[key];
  if (!list) return texts;
  if (!list.IsSequence()) Refuse(std::string(key) + ": expected a list");
  for (const YAML::Node& item : list) {
    if (!item.IsScalar()) Refuse(std::string(key) + ": expected a list of texts");
    texts.push_back(item.Scalar());
  }
  return texts;
}

int ToNumber(const YAML::Node& node, const std::string& key, int low, int high) {
  const auto number = node.IsScalar() ? ParseInt(node.Scalar()) : std::nullopt;
  if (!number || *number < low || *number > high) {
    Refuse(key + ": expected a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return static_cast<int>(*number);
}

// Throws if the key is missing.
int Number(const YAML::Node& map, const char* key, int low, int high) {
  if (!map[key]) Refuse(std::string(key) + " is missing");
  return ToNumber(map[key], key, low, high);
}

int NumberOr(int fallback, const YAML::Node& map, const char* key, int low, int high) {
  return map[key] ? Number(map, key, low, high) : fallback;
}

uint32_t PciId(const std::string& text) {
  size_t read = 0;
  uint64_t id = 0;
  try {
    id = std::stoull(text, &read, 16);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read != text.size() || text.empty() || id > 0xffffffff) {
    Refuse("pciIds: \"" + text + "\" is not device and vendor as hexadecimal, like 0x20B010DE");
  }
  return static_cast<uint32_t>(id);
}

Confidence ReadConfidence(const YAML::Node& map, const char* key) {
  const std::string text = Text(map, key);
  if (text.empty()) return Confidence::kUnsourced;
  for (const Confidence c : {Confidence::kLive, Confidence::kTranscript, Confidence::kInferred,
                             Confidence::kUnsourced}) {
    if (ConfidenceName(c) == text) return c;
  }
  Refuse(std::string(key) + ": expected live, transcript, inferred or unsourced");
}

// [copy, decode, encode, jpeg, ofa]
Engines ReadEngines(const YAML::Node& list) {
  if (!list) return {};
  if (!list.IsSequence() || list.size() != 5) {
    Refuse("engines: expected [copy, decode, encode, jpeg, ofa]");
  }
  const auto at = [&list](size_t i) {
    return static_cast<uint16_t>(ToNumber(list[i], "engines", 0, 1000));
  };
  return {at(0), at(1), at(2), at(3), at(4)};
}

Engines ReadEngineTotals(const YAML::Node& map) {
  CheckKeys(map, {"decode", "encode", "jpeg", "ofa"});
  const auto at = [&map](const char* key) {
    return static_cast<uint16_t>(NumberOr(0, map, key, 0, 1000));
  };
  return {0, at("decode"), at("encode"), at("jpeg"), at("ofa")};
}

std::vector<uint8_t> ReadStarts(const YAML::Node& list) {
  std::vector<uint8_t> starts;
  if (!list || !list.IsSequence()) Refuse("starts: expected a list of slots");
  for (const YAML::Node& item : list) {
    starts.push_back(static_cast<uint8_t>(ToNumber(item, "starts", 0, 31)));
  }
  return starts;
}

ProfileSpec ReadProfile(const YAML::Node& map) {
  CheckKeys(map, {"name", "aliases", "id", "enum", "compute", "size", "max", "starts", "memoryMiB",
                  "multiprocessors", "engines", "excludes", "facts", "placements"});
  ProfileSpec spec;
  Profile& p = spec.profile;
  p.name = Text(map, "name");
  p.aliases = Texts(map, "aliases");
  p.nvml_id = NumberOr(-1, map, "id", 0, 1'000'000);
  p.nvml_enum = NumberOr(-1, map, "enum", 0, 1'000'000);
  p.compute = Number(map, "compute", 1, 32);
  p.slots = Number(map, "size", 1, 32);
  p.max_count = Number(map, "max", 1, 32);
  p.starts = ReadStarts(map["starts"]);
  p.memory_mib = Number(map, "memoryMiB", 1, 100'000'000);
  p.multiprocessors = NumberOr(0, map, "multiprocessors", 0, 100'000);
  p.engines = ReadEngines(map["engines"]);
  p.facts = ReadConfidence(map, "facts");
  p.placements = ReadConfidence(map, "placements");
  spec.excludes = Texts(map, "excludes");
  return spec;
}

std::vector<ProfileSpec> ReadProfiles(const YAML::Node& list) {
  if (!list || !list.IsSequence()) Refuse("profiles: expected a list");
  std::vector<ProfileSpec> profiles;
  for (const YAML::Node& item : list) {
    const std::string where = "profiles[" + std::to_string(profiles.size()) + "]";
    Require(Guarded([&] { profiles.push_back(ReadProfile(item)); }).Within(where));
  }
  return profiles;
}

ModelSpec ReadModel(const YAML::Node& map) {
  CheckKeys(map, {"name", "products", "pciIds", "architecture", "memoryGiB", "computeSlices",
                  "slots", "engineTotals", "profiles"});
  ModelSpec spec;
  spec.name = Text(map, "name");
  spec.architecture = Text(map, "architecture");
  spec.memory_gib = Number(map, "memoryGiB", 1, 1'000'000);
  spec.compute_slices = Number(map, "computeSlices", 1, 32);
  spec.slots = Number(map, "slots", 1, 32);
  spec.products = Texts(map, "products");
  for (const std::string& id : Texts(map, "pciIds")) spec.pci_ids.push_back(PciId(id));
  if (map["engineTotals"]) spec.engine_totals = ReadEngineTotals(map["engineTotals"]);
  spec.profiles = ReadProfiles(map["profiles"]);
  return spec;
}

Geometry ReadGeometry(const YAML::Node& map) {
  if (!map.IsMap()) Refuse("expected a mapping of profile to count");
  Geometry geometry;
  for (const auto& entry : map) {
    geometry[entry.first.Scalar()] = ToNumber(entry.second, entry.first.Scalar(), 1, 32);
  }
  return geometry;
}

class FileReader {
 public:
  explicit FileReader(CatalogueBuilder& builder) : builder_(builder) {}

  void Read(const YAML::Node& root) {
    if (root.IsSequence()) {
      Each(root, "entry ", [this](const YAML::Node& n) { KnownGeometries(n); });
      return;
    }
    CheckKeys(root, {"models", "notPartitionable", "remove", "knownMigGeometries"});
    Each(root["models"], "models", [this](const YAML::Node& n) { PutModel(n); });
    Each(root["notPartitionable"], "notPartitionable",
         [this](const YAML::Node& n) { Unpartitionable(n); });
    Each(root["remove"], "remove", [this](const YAML::Node& n) { Remove(n); });
    Each(root["knownMigGeometries"], "knownMigGeometries",
         [this](const YAML::Node& n) { KnownGeometries(n); });
  }

 private:
  using Reader = std::function<void(const YAML::Node&)>;

  // Reads every element of a list. An invalid element is reported as a problem and does not affect
  // the others.
  void Each(const YAML::Node& list, const std::string& name, const Reader& read) {
    if (!list) return;
    if (!list.IsSequence()) return builder_.AddProblem(name + ": expected a list");
    const std::string outer = where_;
    size_t index = 0;
    for (const YAML::Node& item : list) {
      where_ = outer + name + "[" + std::to_string(index++) + "]";
      Try([&] { read(item); });
      if (index == kMaxEntries) break;
    }
    where_ = outer;
  }

  void Try(const std::function<void()>& step) {
    const Status status = Guarded(step);
    if (!status.ok()) builder_.AddProblem(where_ + ": " + status.message());
  }

  void PutModel(const YAML::Node& node) {
    ModelSpec spec = ReadModel(node);
    Require(builder_.Put(std::move(spec)));
  }

  void Unpartitionable(const YAML::Node& node) {
    CheckKeys(node, {"products", "reason"});
    for (const std::string& product : Texts(node, "products")) {
      builder_.AddUnpartitionable(product, Text(node, "reason"));
    }
  }

  void Remove(const YAML::Node& node) {
    CheckKeys(node, {"model", "profiles", "geometries"});
    const std::string model = Text(node, "model");
    if (!node["profiles"] && !node["geometries"]) return Require(builder_.RemoveModel(model));
    for (const std::string& profile : Texts(node, "profiles")) {
      Try([&] { Require(builder_.RemoveProfile(model, profile)); });
    }
    Each(node["geometries"], ".geometries", [&](const YAML::Node& geometry) {
      Require(builder_.Forbid(model, ReadGeometry(geometry)));
    });
  }

  // The format of earlier versions of nos: {models: [...], allowedGeometries: [{profile: count}]}.
  void KnownGeometries(const YAML::Node& node) {
    CheckKeys(node, {"models", "allowedGeometries"});
    const std::vector<std::string> models = Texts(node, "models");
    if (models.empty()) Refuse("models: name at least one");
    if (!node["allowedGeometries"]) Refuse("allowedGeometries is missing");
    if (node["allowedGeometries"].IsSequence() && node["allowedGeometries"].size() == 0) {
      Refuse("allowedGeometries is empty; leave the entry out to allow every geometry");
    }
    for (const std::string& model : models) AllowGeometries(model, node["allowedGeometries"]);
  }

  // The default list of those versions has geometries that no GPU can have. They restrict nothing,
  // so they are ignored instead of refused.
  void AllowGeometries(const std::string& model, const YAML::Node& list) {
    const std::string name = builder_.NameOf(model);
    if (name.empty()) {
      return Ignore({"", where_ + ": no model \"" + model + "\" in the catalogue"});
    }
    bool restricted = false;
    Each(list, ".allowedGeometries", [&](const YAML::Node& node) {
      const Status allowed = builder_.Allow(model, ReadGeometry(node));
      if (allowed.code() != Code::kInvalid) Require(allowed);
      restricted = restricted || allowed.ok();
      if (!allowed.ok()) Ignore({name, where_ + ": " + allowed.message()});
    });
    if (restricted) return;
    Ignore({name, where_ + ": no geometry is possible on " + name + ", which stays as it is"});
  }

  void Ignore(IgnoredGeometry geometry) { builder_.AddIgnored(std::move(geometry)); }

  CatalogueBuilder& builder_;
  std::string where_;  // "remove[2]"
};

}  // namespace

Status ReadCatalogueFile(std::string_view yaml, CatalogueBuilder& builder) {
  if (yaml.size() > kMaxBytes) return Invalid("catalogue: larger than 1 MiB");
  return Guarded([&] {
           const YAML::Node root = YAML::Load(std::string(yaml));
           if (root.IsNull()) return;
           FileReader(builder).Read(root);
         })
      .Within("catalogue");
}

}  // namespace nos::gpu
