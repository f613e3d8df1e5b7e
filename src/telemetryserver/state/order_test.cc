// For two reporters and any order of arrival, the written changes reproduce the state in memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {
namespace {

struct Written {
  std::vector<State::Change> changes;
  std::vector<Json> checkpoint;
  telemetry::Millis checkpoint_at = -1;
  size_t before = 0;  // number of changes included in the checkpoint

  void Add(State::Effects effects) {
    std::ranges::move(effects.changes, std::back_inserter(changes));
  }
};

void Apply(State& state, const Json& body) {
  if (state.Restore(body)) return;
  const auto record = telemetry::ReadRecord(body);
  ASSERT_TRUE(record.ok()) << record.status().ToString();
  state.Apply(*record, "");
}

// Reads changes like Archive::StateAt.
void Read(const Written& written, State& state) {
  std::vector<const State::Change*> order;
  for (size_t i = 0; i < written.changes.size(); ++i) {
    const State::Change& change = written.changes[i];
    if (change.at > written.checkpoint_at || i >= written.before) order.push_back(&change);
  }
  std::ranges::stable_sort(order, {}, [](const auto* change) { return change->at; });
  for (const Json& record : written.checkpoint) Apply(state, record);
  for (const State::Change* change : order) Apply(state, change->body);
}

std::string Text(Json record) {
  record.get_object()["at"] = 0;
  return WriteJson(record);
}

std::string TextOf(const State& state) {
  std::string text;
  for (const auto& [name, node] : state.nodes()) {
    text += name + (node.record_at < 0 ? " unreported" : " " + Text(node.body));
    text += node.layout_at < 0 ? " unpartitioned\n"
                               : " " + Text(telemetry::LayoutRecord(0, node.layout)) + "\n";
  }
  for (const auto& [uid, pod] : state.pods()) text += Text(pod.body) + "\n";
  for (const auto& [key, quota] : state.quotas()) text += Text(quota.body) + "\n";
  return text;
}

struct Report {
  std::string source;
  Json body;
};

// Records of one reporter in its order: a full list of the objects that it sees, then changes.
class Reporter {
 public:
  Reporter(Random& random, std::string source, telemetry::Millis at)
      : random_(random), source_(std::move(source)), at_(at) {}

  std::vector<Report> Reports(size_t words) {
    ReportAll();
    while (words-- > 0) {
      at_ += static_cast<telemetry::Millis>(random_.Below(4));
      const std::string what = kWhat.at(random_.Below(3));
      const std::string name = random_.Below(2) == 0 ? "a" : "b";
      const bool gone = random_.Below(4) == 0;
      if (random_.Below(12) == 0) {
        ReportAll();
      } else if (gone && sees_.erase(what + name) > 0) {
        Put({{"kind", "removed"}, {"what", what}, {"id", IdOf(what, name)}});
      } else if (!gone) {
        sees_.insert(what + name);
        Put(BodyOf(what, name));
      }
    }
    return std::move(reports_);
  }

 private:
  void ReportAll() {
    for (const std::string& what : kWhat) {
      JsonArray ids;
      for (const std::string name : {"a", "b"}) {
        if (!sees_.contains(what + name)) continue;
        Put(BodyOf(what, name));
        ids.emplace_back(IdOf(what, name));
      }
      Put({{"kind", "present"}, {"what", what}, {"ids", std::move(ids)}});
    }
  }
  static std::string IdOf(const std::string& what, const std::string& name) {
    return what == "quota" ? "ElasticQuota/team/" + name : name;
  }
  JsonObject BodyOf(const std::string& what, const std::string& name) {
    const bool other = random_.Below(2) == 0;
    if (what == "pod") {
      return {{"kind", "pod"},
              {"uid", name},
              {"namespace", "team"},
              {"name", name},
              {"state", other ? "pending" : "running"}};
    }
    if (what == "node") return {{"kind", "node"}, {"node", name}, {"ready", other}};
    return {{"kind", "quota"},
            {"type", "ElasticQuota"},
            {"namespace", "team"},
            {"name", name},
            {"used", other ? 1 : 2}};
  }
  void Put(JsonObject body) {
    body["at"] = at_;
    reports_.push_back({source_, std::move(body)});
  }

  inline static const std::vector<std::string> kWhat = {"pod", "node", "quota"};
  Random& random_;
  const std::string source_;
  telemetry::Millis at_;
  std::set<std::string> sees_ = {"poda", "nodea", "nodeb", "quotaa"};
  std::vector<Report> reports_;
};

std::vector<Report> Layouts(Random& random, const std::string& node, size_t words) {
  std::vector<Report> reports;
  telemetry::Millis at = 100;
  while (words-- > 0) {
    at += static_cast<telemetry::Millis>(random.Below(12));
    telemetry::Layout layout{node, "mig", {}};
    for (size_t i = 0; i < 1 + random.Below(2); ++i) {
      layout.gpus.push_back({static_cast<int64_t>(i),
                             "GPU-" + node + std::to_string(i),
                             "A30",
                             24576,
                             4,
                             true,
                             "",
                             {},
                             {}});
    }
    reports.push_back({"node/" + node, telemetry::LayoutRecord(at, layout)});
  }
  return reports;
}

class StateOrderTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(StateOrderTest, WrittenChangesReproduceState) {
  for (uint64_t seed = GetParam() * 500; seed < (GetParam() + 1) * 500; ++seed) {
    Random random(seed);
    std::vector<std::vector<Report>> lines;
    lines.push_back(Reporter(random, "old", 100).Reports(4 + random.Below(12)));
    lines.push_back(Reporter(random, "new", 110).Reports(4 + random.Below(12)));
    lines.push_back(Layouts(random, "a", random.Below(6)));
    lines.push_back(Layouts(random, "b", random.Below(6)));
    auto live = std::make_unique<State>();
    Written written;
    std::vector<size_t> next(lines.size());
    std::string story;
    while (true) {
      std::vector<size_t> left;
      for (size_t i = 0; i < lines.size(); ++i) {
        if (next[i] < lines[i].size()) left.push_back(i);
      }
      if (left.empty()) break;
      const size_t line = left[random.Below(left.size())];
      // Often several records of one reporter together, as in an envelope.
      for (size_t n = 1 + random.Below(4); n > 0 && next[line] < lines[line].size(); --n) {
        const Report& report = lines[line][next[line]++];
        story += report.source + " " + WriteJson(report.body) + "\n";
        const auto record = telemetry::ReadRecord(report.body);
        ASSERT_TRUE(record.ok()) << record.status().ToString();
        written.Add(live->Apply(*record, report.source));
      }
      if (random.Below(15) == 0) {
        written.checkpoint = live->Records();
        written.checkpoint.push_back(live->gone().ToJson(live->now()));
        written.checkpoint_at = live->now();
        written.before = written.changes.size();
        story += "checkpoint\n";
      }
      const bool restart = random.Below(15) == 0;
      auto again = std::make_unique<State>();
      Read(written, *again);
      ASSERT_EQ(TextOf(*again), TextOf(*live)) << "seed " << seed << "\n" << story;
      if (restart) live = std::move(again);
      if (restart) story += "restart\n";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StateOrderTest, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace nos::telemetryserver
