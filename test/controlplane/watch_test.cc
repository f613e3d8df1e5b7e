// A cache fed by the real API server: no event is lost or delivered twice when the API server
// stops, restarts, or has forgotten the watch's version.
#include <fmt/core.h>

#include <map>

#include "contract.h"

namespace nos::kube {
namespace {

class WatchOutage : public ContractTest {
 protected:
  void Watch() {
    cache_ = Watched();
    cache_->AddHandler([this](const std::string& key, const auto& before, const auto& after) {
      ++told_[key + (before == nullptr ? " added" : after == nullptr ? " gone" : " changed")];
    });
    MakeRecords(3);
    PumpUntil(*cache_, [this] { return Known() == 3; });
    // The first delivered event shows that the watch is open.
    Make(kConfigMaps, RecordOf("first"));
    PumpUntil(*cache_, [this] { return Has("first"); });
    told_.clear();
    transport_->lists = 0;
  }
  size_t Known() const { return cache_->Snapshot()->size(); }
  bool Has(std::string_view name) const { return cache_->Get(KeyOf(ns_, name)) != nullptr; }
  int Told(std::string_view name, std::string_view what) {
    return told_[fmt::format("{}/{} {}", ns_, name, what)];
  }

  std::unique_ptr<Cache<Record>> cache_;
  std::map<std::string, int> told_;
};

TEST_F(WatchOutage, ResumesWatchAfterApiServerRestart) {
  Watch();
  ControlPlane("kill kube-apiserver");
  ControlPlane("start kube-apiserver");
  Make(kConfigMaps, RecordOf("after"));
  PumpUntil(*cache_, [this] { return Has("after"); });
  // The watch resumes, unless other clients wrote meanwhile and the restarted server does not know
  // that version.
  EXPECT_LE(transport_->lists, 1);
  EXPECT_EQ(told_.size(), 1U);
  EXPECT_EQ(Told("after", "added"), 1);
}

TEST_F(WatchOutage, LosesNoEventDuringOutage) {
  Watch();
  ControlPlane("kill kube-apiserver");
  PumpUntil(*cache_, [this] { return !cache_->reflector().last_error().ok(); });
  for (int i = 0; i < 5; ++i) {  // it retries, and keeps its objects
    bell_.Wait(std::chrono::milliseconds(300));
    cache_->Pump(*client_, SystemClock().Now());
  }
  EXPECT_EQ(Known(), 4U);
  EXPECT_TRUE(told_.empty());
  ControlPlane("start kube-apiserver");
  Make(kConfigMaps, RecordOf("after"));
  ASSERT_TRUE(client_->Delete(kConfigMaps, ns_, "record-0001").ok());
  PumpUntil(*cache_, [this] { return Has("after") && !Has("record-0001"); });
  EXPECT_EQ(told_.size(), 2U);
  EXPECT_EQ(Told("after", "added"), 1);
  EXPECT_EQ(Told("record-0001", "gone"), 1);
}

TEST_F(WatchOutage, RelistsAfterCompactedVersion) {
  Watch();
  ControlPlane("kill kube-apiserver");
  ControlPlane("start kube-apiserver");
  // The cache is not pumped meanwhile.
  Make(kConfigMaps, RecordOf("after"));
  ASSERT_TRUE(client_->Delete(kConfigMaps, ns_, "record-0001").ok());
  ASSERT_TRUE(client_->Update(kConfigMaps, ns_, RecordOf("record-0002", "new")).ok());
  Compact();
  PumpUntil(*cache_, [this] { return Has("after"); });
  EXPECT_GE(transport_->lists, 1) << "the watch was refused with 410";
  EXPECT_FALSE(Has("record-0001"));
  EXPECT_EQ(Told("record-0001", "gone"), 1);
  EXPECT_EQ(Told("record-0002", "changed"), 1);
  EXPECT_EQ(told_.size(), 3U);
}

using WatchContract = ContractTest;

TEST_F(WatchContract, BookmarksAdvanceVersionOfIdleWatch) {
  ListOptions options;
  auto list = client_->List(kConfigMaps, ns_, options);
  ASSERT_TRUE(list.ok());
  options.resource_version = list->resource_version;
  // The server sends a bookmark before it ends a watch, which it does after timeoutSeconds.
  ApiRequest request;
  request.method = "GET";
  request.path = PathOf(kConfigMaps, ns_);
  request.query = {{"watch", "true"},
                   {"allowWatchBookmarks", "true"},
                   {"resourceVersion", list->resource_version},
                   {"timeoutSeconds", "5"}};
  auto stream = http_->Watch(request);
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  // A write elsewhere raises the version without an event for this watch.
  const Json other = {{"metadata", {{"name", ns_}}}};
  ASSERT_TRUE(client_->Create(kConfigMaps, "default", other).ok());
  ASSERT_TRUE(client_->Delete(kConfigMaps, "default", ns_).ok());
  std::string last;
  Until([&] {
    (*stream)->OnReady([&] { bell_.Ring(); });
    while (auto event = (*stream)->Next()) last = event->type;
    return (*stream)->Ended();
  });
  EXPECT_EQ(last, "BOOKMARK");
}

}  // namespace
}  // namespace nos::kube
