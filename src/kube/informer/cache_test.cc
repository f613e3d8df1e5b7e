#include "kube/cache.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

namespace nos::kube {
namespace {

// A collection whose watch events are written by the test.
class Scripted final : public Transport {
 public:
  struct Stream {
    std::deque<WatchEvent> events;
    bool ended = false;
  };
  class Reader final : public WatchStream {
   public:
    explicit Reader(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
    std::optional<WatchEvent> Next() override {
      if (stream_->events.empty()) return std::nullopt;
      WatchEvent event = std::move(stream_->events.front());
      stream_->events.pop_front();
      return event;
    }
    bool Ended() const override { return stream_->ended && stream_->events.empty(); }
    void OnReady(std::function<void()>) override {}

   private:
    std::shared_ptr<Stream> stream_;
  };

  Result<ApiResponse> Do(const ApiRequest&) override {
    ++lists;
    if (list_fails) return Status(Code::kUnavailable, "down");
    return ApiResponse{200, {{"metadata", {{"resourceVersion", version}}}, {"items", items}}};
  }
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override {
    watched_from.push_back(request.Query("resourceVersion"));
    if (watch_fails) return Status(Code::kUnavailable, "down");
    stream = std::make_shared<Stream>();
    return std::unique_ptr<WatchStream>(std::make_unique<Reader>(stream));
  }

  JsonArray items;
  std::string version = "10";
  bool list_fails = false, watch_fails = false;
  int lists = 0;
  std::vector<std::string> watched_from;
  std::shared_ptr<Stream> stream;
};

Json Object(std::string_view name, int version, std::string_view text = "x") {
  return {{"metadata",
           {{"namespace", "a"}, {"name", name}, {"resourceVersion", std::to_string(version)}}},
          {"text", text}};
}

struct Note {
  struct {
    std::string ns, name, resource_version;
  } meta;
  std::string text;
};

Status ReadNote(JsonSource json, Note& to) {
  NOS_RETURN_IF_ERROR(ReadJson(json, [&](Cursor& root) {
    root.Members([&](std::string_view key, Cursor& value) {
      if (key == "text") to.text = value.Text();
      if (key != "metadata") return;
      value.Members([&](std::string_view name, Cursor& member) {
        if (name == "namespace") to.meta.ns = member.Text();
        if (name == "name") to.meta.name = member.Text();
        if (name == "resourceVersion") to.meta.resource_version = member.Text();
      });
    });
  }));
  return to.text == "bad" ? Invalid("text: bad") : Status::Ok();
}

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    cache_.AddHandler([this](const std::string& key, const auto& before, const auto& after) {
      seen_.push_back((before == nullptr ? "+" : after == nullptr ? "-" : "~") + key);
    });
  }
  bool Pump() { return cache_.Pump(client_, now_); }
  void Send(std::string type, Json object) {
    transport_.stream->events.push_back({std::move(type), std::move(object), {}});
  }
  std::string Get(const std::string& key) {
    const auto object = cache_.Get(key);
    return object == nullptr ? "(none)" : object->text;
  }

  Scripted transport_;
  Client client_{transport_};
  Time now_{std::chrono::seconds(1000)};
  Cache<Note> cache_{kPods, ReadNote, {.relist_every = std::chrono::hours(1)}};
  std::vector<std::string> seen_;
};

TEST_F(CacheTest, ListsThenFollowsTheWatch) {
  transport_.items = {Object("p", 5)};
  EXPECT_FALSE(cache_.synced());
  EXPECT_TRUE(Pump());
  EXPECT_TRUE(cache_.synced());
  EXPECT_EQ(transport_.watched_from, std::vector<std::string>{"10"});
  Send("ADDED", Object("q", 11));
  Send("MODIFIED", Object("p", 12, "y"));
  Send("DELETED", Object("q", 13));
  EXPECT_TRUE(Pump());
  EXPECT_FALSE(Pump());
  EXPECT_EQ(Get("a/p"), "y");
  EXPECT_EQ(Get("a/q"), "(none)");
  EXPECT_EQ(seen_, (std::vector<std::string>{"+a/p", "+a/q", "~a/p", "-a/q"}));
}

TEST_F(CacheTest, SnapshotIsImmutable) {
  transport_.items = {Object("p", 5), Object("b", 6)};
  Pump();
  const auto before = cache_.Snapshot();
  EXPECT_EQ(before, cache_.Snapshot()) << "not rebuilt without a change";
  Send("DELETED", Object("p", 11));
  Pump();
  EXPECT_EQ(before->size(), 2u);
  EXPECT_EQ(cache_.Snapshot()->size(), 1u);
}

TEST_F(CacheTest, IgnoresOldAndRepeatedEvents) {
  transport_.items = {Object("p", 9, "new")};
  Pump();
  Send("MODIFIED", Object("p", 7, "old"));
  Send("ADDED", Object("p", 9, "new"));
  EXPECT_FALSE(Pump());
  Send("DELETED", Object("p", 12));
  Pump();
  Send("MODIFIED", Object("p", 11, "ghost"));
  EXPECT_FALSE(Pump()) << "a deleted object must not come back by a late event";
  Send("ADDED", Object("p", 14, "reborn"));
  EXPECT_TRUE(Pump());
  EXPECT_EQ(Get("a/p"), "reborn");
}

TEST_F(CacheTest, OrdersNonNumericVersionsByArrival) {
  transport_.items = {Object("p", 9)};
  Pump();
  Json odd = Object("p", 1, "y");
  odd.at("metadata").at("resourceVersion") = "opaque";
  Send("MODIFIED", odd);
  Pump();
  EXPECT_EQ(Get("a/p"), "y");
}

TEST_F(CacheTest, ReportsUndecodableObjectAndKeepsOthers) {
  transport_.items = {Object("bad", 5, "bad"), Object("p", 6)};
  Pump();
  EXPECT_EQ(Get("a/p"), "x");
  EXPECT_EQ(cache_.Problems().at("a/bad"), "text: bad");
  Send("MODIFIED", Object("p", 11, "bad"));
  Pump();
  EXPECT_EQ(Get("a/p"), "x") << "what was known stays";
  Send("MODIFIED", Object("p", 12, "good"));
  Send("DELETED", Object("bad", 13));
  Pump();
  EXPECT_EQ(Get("a/p"), "good");
  EXPECT_TRUE(cache_.Problems().empty());
}

TEST_F(CacheTest, GoneRelistsAndRemovesDeletedObjects) {
  transport_.items = {Object("p", 5), Object("q", 6)};
  Pump();
  transport_.items = {Object("q", 6)};
  transport_.version = "50";
  Send("ERROR", {{"kind", "Status"}, {"code", 410}});
  EXPECT_TRUE(Pump());
  EXPECT_EQ(transport_.lists, 2);
  EXPECT_EQ(Get("a/p"), "(none)");
  EXPECT_EQ(transport_.watched_from.back(), "50");
}

TEST_F(CacheTest, ResumesEndedWatchFromLastVersion) {
  Pump();
  Send("BOOKMARK", Object("", 33));
  transport_.stream->ended = true;
  Pump();
  EXPECT_EQ(transport_.lists, 1);
  EXPECT_EQ(transport_.watched_from.back(), "33");
}

// The collection was quiet for long, and the transport took the silence for a lost connection.
TEST_F(CacheTest, ResumesLongWatchAfterError) {
  Pump();
  for (int i = 0; i < 20; ++i) {
    now_ += std::chrono::seconds(150);
    Send("ERROR", {{"message", "no data for 150 s"}});
    Pump();
    Pump();
    EXPECT_GT(cache_.reflector().NextDue(), now_ + std::chrono::seconds(30)) << "it watches again";
  }
  EXPECT_EQ(transport_.watched_from.size(), 21u);
  EXPECT_EQ(transport_.lists, 1);
}

TEST_F(CacheTest, BacksOffAfterFailuresThenRelists) {
  transport_.list_fails = true;
  Pump();
  Pump();
  const int tried = transport_.lists;
  EXPECT_FALSE(Pump());
  EXPECT_EQ(transport_.lists, tried) << "waits for the back-off";
  EXPECT_GT(cache_.reflector().NextDue(), now_);
  transport_.list_fails = false;
  transport_.watch_fails = true;
  for (int i = 0; i < 10; ++i) {
    now_ = cache_.reflector().NextDue();
    Pump();
  }
  EXPECT_GT(transport_.lists, tried + 1) << "the version itself may be the trouble";
  transport_.watch_fails = false;
  now_ = cache_.reflector().NextDue();
  Pump();
  Send("ADDED", Object("p", 90));
  EXPECT_TRUE(Pump());
}

TEST_F(CacheTest, RelistsPeriodically) {
  transport_.items = {Object("p", 5)};
  Pump();
  transport_.items = {};
  now_ += std::chrono::minutes(59);
  EXPECT_FALSE(Pump());
  now_ += std::chrono::minutes(2);
  EXPECT_TRUE(Pump());
  EXPECT_EQ(Get("a/p"), "(none)");
}

}  // namespace
}  // namespace nos::kube
