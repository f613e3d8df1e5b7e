// Parts of a virtual world in isolation: queue, specs, faulty transport.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "sim/specs.h"
#include "sim/workload.h"
#include "sim/world/events/queue.h"
#include "sim/world/events/world_clock.h"
#include "sim/world/node/faulty_transport.h"
#include "sim/world/node/status.h"

namespace nos::sim {
namespace {

constexpr Time kStart{};
constexpr Duration kSecond = std::chrono::seconds(1);

TEST(EventQueueTest, RunsByTimeThenByInsertionOrder) {
  EventQueue queue;
  std::string seen;
  queue.At(kStart + 2 * kSecond, [&] { seen += 'c'; });
  queue.At(kStart + kSecond, [&] {
    seen += 'a';
    queue.At(kStart + kSecond, [&] { seen += 'b'; });
  });
  queue.At(kStart + 2 * kSecond, [&] { seen += 'd'; });
  EXPECT_FALSE(queue.Due(kStart));
  EXPECT_EQ(*queue.NextTime(), kStart + kSecond);
  while (queue.Due(kStart + 2 * kSecond)) queue.RunNext();
  EXPECT_EQ(seen, "abcd");
}

TEST(SpecsTest, ProductLabelsIdentifyTheirModels) {
  for (const auto& model : gpu::Catalogue::Builtin().models()) {
    EXPECT_EQ(gpu::Catalogue::Builtin().FindByProduct(ProductLabel(model->name())), model.get())
        << model->name() << " as " << ProductLabel(model->name());
  }
}

TEST(SpecsTest, ObjectsAreReadableAsKubernetesObjects) {
  NodeSpec node{.name = "n1", .gpus = {{"A30", {}}, {"A30", {}}}};
  node.taints = {{"k", "v", "NoSchedule"}};
  const auto decoded_node = cluster::DecodeNode(NodeObject(node));
  ASSERT_TRUE(decoded_node.ok()) << decoded_node.status().ToString();
  EXPECT_EQ(decoded_node->meta.labels.at("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(decoded_node->taints.size(), 1u);

  PodSpec pod;
  pod.name = "a";
  pod.containers = {{{"1g.5gb+me", 2}}, {{"3g.20gb", 1}}};
  pod.cpu = Quantity::FromMilli(500);
  pod.priority = 7;
  pod.run = std::chrono::milliseconds(1500);
  const auto decoded_pod = cluster::DecodePod(PodObject(pod));
  ASSERT_TRUE(decoded_pod.ok()) << decoded_pod.status().ToString();
  EXPECT_EQ(decoded_pod->priority, 7);
  EXPECT_EQ(RunTime(*decoded_pod), Duration(std::chrono::milliseconds(1500)));
  const cluster::ResourceList requests = cluster::PodRequests(*decoded_pod);
  EXPECT_EQ(requests.at("nvidia.com/mig-1g.5gb.me").Value(), 2);
  EXPECT_EQ(requests.at("nvidia.com/mig-3g.20gb").Value(), 1);
}

TEST(WorkloadTest, DemoIsTheSameForTheSameSeedAndFitsTheModels) {
  const auto& catalogue = gpu::Catalogue::Builtin();
  for (const auto& model : catalogue.models()) {
    const auto demo = DemoWorkload({model.get(), model.get()}, 3);
    const auto again = DemoWorkload({model.get(), model.get()}, 3);
    ASSERT_GT(demo.size(), 10u);
    for (size_t i = 0; i < demo.size(); ++i) {
      EXPECT_EQ(WriteJson(PodObject(demo[i])), WriteJson(PodObject(again[i])));
      for (const auto& [profile, count] : demo[i].containers.at(0)) {
        EXPECT_TRUE(model->FindProfile(profile)) << model->name() << " " << profile;
      }
    }
  }
}

TEST(WorkloadTest, DemoOfHybridNodesHasAllSharingModes) {
  const auto& catalogue = gpu::Catalogue::Builtin();
  const gpu::Model* hybrid = catalogue.FindSharingModes("H100-80GB+GPU+TIME-4");
  const auto demo = DemoWorkload({hybrid, catalogue.FindByName("A100-40GB")}, 3);
  std::set<std::string> asked;
  for (const PodSpec& pod : demo) {
    EXPECT_EQ(pod.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string::npos)
        << pod.name;
    if (pod.name.starts_with("h100-80gb-hybrid-")) asked.insert(pod.containers[0].begin()->first);
  }
  EXPECT_TRUE(asked.contains("gpu") && asked.contains("shared") && asked.contains("1g.10gb"));
}

// A server whose only watch delivers events from the test.
class FakeServer final : public kube::Transport {
 public:
  Result<kube::ApiResponse> Do(const kube::ApiRequest&) override {
    ++requests;
    return kube::ApiResponse{};
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest&) override {
    return std::unique_ptr<kube::WatchStream>(std::make_unique<Stream>(*this));
  }

  int requests = 0;
  std::deque<kube::WatchEvent> events;

 private:
  struct Stream final : kube::WatchStream {
    explicit Stream(FakeServer& owner) : server(owner) {}
    std::optional<kube::WatchEvent> Next() override {
      if (server.events.empty()) return std::nullopt;
      kube::WatchEvent event = std::move(server.events.front());
      server.events.pop_front();
      return event;
    }
    bool Ended() const override { return false; }
    void OnReady(std::function<void()>) override {}
    FakeServer& server;
  };
};

struct FaultyWay {
  explicit FaultyWay(FaultRates rates)
      : faults(rates, kStart + 100 * kSecond, Random(1), clock),
        transport("test", server, faults, life, queue, clock, log) {}

  Code Patch() {
    kube::ApiRequest request;
    request.method = "PATCH";
    const auto response = transport.Do(request);
    if (!response.ok()) return response.status().code();
    return response->code == 409 ? Code::kConflict : Code::kOk;
  }
  std::string Take(kube::WatchStream& stream) {
    std::string types;
    while (auto event = stream.Next()) types += event->type;
    return types;
  }

  WorldClock clock{kStart};
  EventQueue queue;
  EventLog log{clock, kStart};
  FakeServer server;
  Life life;
  Faults faults;
  FaultyTransport transport;
};

TEST(FaultyTransportTest, ReportsWhetherTheRequestReachedTheServer) {
  FaultRates rates;
  rates.request_lost = 1;
  FaultyWay lost(rates);
  EXPECT_EQ(lost.Patch(), Code::kUnavailable);
  EXPECT_EQ(lost.server.requests, 0);

  FaultRates after;
  after.response_lost = 1;
  FaultyWay done(after);
  EXPECT_EQ(done.Patch(), Code::kDeadline);
  EXPECT_EQ(done.server.requests, 1);

  FaultRates refuse;
  refuse.conflict = 1;
  FaultyWay refused(refuse);
  EXPECT_EQ(refused.Patch(), Code::kConflict);
  EXPECT_EQ(refused.server.requests, 0);
}

TEST(FaultyTransportTest, NothingReachesTheServerAfterACrash) {
  FaultRates rates;
  rates.crash = 1;
  FaultyWay way(rates);
  EXPECT_EQ(way.Patch(), Code::kUnavailable);
  EXPECT_FALSE(way.life.alive);
  const int reached = way.server.requests;
  EXPECT_EQ(way.Patch(), Code::kUnavailable);
  EXPECT_EQ(way.server.requests, reached);
}

TEST(FaultyTransportTest, FaultsEndAtTheirEndTime) {
  FaultRates rates;
  rates.request_lost = rates.conflict = rates.crash = 1;
  FaultyWay way(rates);
  way.clock.AdvanceTo(way.faults.until());
  EXPECT_EQ(way.Patch(), Code::kOk);
}

TEST(FaultyTransportTest, DelayedEventsKeepTheirOrderAndWakeTheWorld) {
  FaultRates rates;
  rates.event_delayed = 0.5;
  FaultyWay way(rates);
  const auto stream = std::move(*way.transport.Watch({}));
  std::string sent;
  for (char c = 'a'; c <= 'z'; ++c) {
    way.server.events.push_back({std::string(1, c), {}});
    sent += c;
  }
  std::string got = way.Take(*stream);
  EXPECT_LT(got.size(), sent.size());
  while (way.queue.NextTime()) {
    way.clock.AdvanceTo(*way.queue.NextTime());
    way.queue.RunNext();
    got += way.Take(*stream);
  }
  EXPECT_EQ(got, sent);
}

TEST(FaultyTransportTest, StreamsRepeatAndBreakOff) {
  FaultRates repeat;
  repeat.event_repeated = 1;
  FaultyWay twice(repeat);
  const auto repeated = std::move(*twice.transport.Watch({}));
  twice.server.events = {{"A", {}}, {"B", {}}};
  EXPECT_EQ(twice.Take(*repeated), "AABB");

  FaultRates drop;
  drop.stream_dropped = 1;
  FaultyWay broken(drop);
  const auto dropped = std::move(*broken.transport.Watch({}));
  broken.server.events = {{"A", {}}};
  EXPECT_EQ(broken.Take(*dropped), "");
  EXPECT_TRUE(dropped->Ended());
}

}  // namespace
}  // namespace nos::sim
