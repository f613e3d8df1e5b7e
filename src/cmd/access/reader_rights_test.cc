#include "cmd/access/reader_rights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>

namespace nos::cmd {
namespace {

using std::chrono::seconds;
using Names = std::set<std::string>;

// Answers access reviews of listing pods. Records the number of reviews per round.
class Reviewer final : public kube::Transport {
 public:
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    return std::move(DoAll({request}).front());
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest&) override {
    return Status(Code::kUnimplemented, "nothing is watched");
  }
  std::vector<Result<kube::ApiResponse>> DoAll(
      const std::vector<kube::ApiRequest>& requests) override {
    std::unique_lock lock(mutex_);
    goes.push_back(requests.size());
    if (requests.size() > 1) {
      ++waiting;
      turn_.notify_all();
      turn_.wait(lock, [this] { return !held; });
    }
    std::vector<Result<kube::ApiResponse>> answers;
    for (const kube::ApiRequest& request : requests) {
      Json body = request.body;
      asked.emplace_back(FindString(body, "spec", "resourceAttributes", "namespace"));
      body.get_object()["status"] = {
          {"allowed", mine.contains(asked.back()) || FindString(body, "spec", "user") == chief}};
      answers.emplace_back(kube::ApiResponse{down ? 500 : 201, std::move(body), {}, {}});
    }
    if (slow) slow();
    return answers;
  }
  size_t Count(const std::string& ns) const {
    return static_cast<size_t>(std::ranges::count(asked, ns));
  }
  void Forget() { asked.clear(), goes.clear(); }
  void AwaitGoes(int count) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return waiting >= count; });
  }
  void Release() {
    const std::scoped_lock lock(mutex_);
    held = false;
    turn_.notify_all();
  }

  Names mine;         // "": all
  std::string chief;  // sees everything
  std::vector<std::string> asked;
  std::vector<size_t> goes;
  int waiting = 0;  // rounds about many namespaces in progress
  bool held = false, down = false;
  std::function<void()> slow;

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
};

class ReaderRightsTest : public ::testing::Test {
 protected:
  ReaderRightsTest() {
    for (int i = 0; i < 600; ++i) known_.insert(fmt::format("aaa-{:04}", i));
    known_.insert("zz");
  }
  telemetryserver::Reader Reader() {
    const auto reader = rights_.Of(subject_);
    EXPECT_TRUE(reader.ok()) << reader.status().ToString();
    return reader.ok() ? *reader : telemetryserver::Reader();
  }

  Names known_;
  Reviewer api_;
  ManualClock clock_{Time(seconds(1'800'000'000))};
  ReaderRights rights_{api_, clock_, [this] { return known_; }, false};
  Json subject_{{"user", "zoe"}, {"groups", {"g"}}};
};

TEST_F(ReaderRightsTest, OneReviewForReaderOfAllNamespaces) {
  api_.mine = {""};
  EXPECT_TRUE(Reader().may_all);
  EXPECT_EQ(Reader().unasked, 0U);
  EXPECT_EQ(api_.asked.size(), 1U);
}

TEST_F(ReaderRightsTest, ReviewsManyNamespacesPerRoundInTurns) {
  api_.mine = {"aaa-0003", "zz"};
  const telemetryserver::Reader first = Reader();
  EXPECT_EQ(first.namespaces, Names{"aaa-0003"});
  EXPECT_EQ(first.unasked, 101U);
  EXPECT_EQ(api_.goes.size(), 11U) << "one round of all, then ten rounds of fifty";
  EXPECT_LE(*std::ranges::max_element(api_.goes), 50U);
  clock_.Advance(seconds(10));
  const telemetryserver::Reader second = Reader();
  EXPECT_EQ(second.namespaces, api_.mine);
  EXPECT_EQ(second.unasked, 0U);
  EXPECT_EQ(api_.Count("aaa-0003"), 2U);
  EXPECT_EQ(api_.Count("aaa-0004"), 1U);
}

TEST_F(ReaderRightsTest, ReviewsRightsAgainAfterMinute) {
  known_ = {"a", "b", "zz"};
  api_.mine = {"zz"};
  EXPECT_EQ(Reader().namespaces, Names{"zz"});
  api_.mine = {"b"};
  EXPECT_EQ(Reader().namespaces, Names{"zz"}) << "kept for a minute";
  clock_.Advance(seconds(60));
  EXPECT_EQ(Reader().namespaces, Names{"b"});
}

TEST_F(ReaderRightsTest, LaterRoundsNeedFewerReviews) {
  Reader();
  clock_.Advance(seconds(10));
  Reader();
  clock_.Advance(seconds(60));
  api_.Forget();
  Reader();
  EXPECT_EQ(api_.asked.size(), 1U + ReaderRights::kAskAgain);
}

TEST_F(ReaderRightsTest, RetriesAfterSlowApiServer) {
  api_.mine = {"aaa-0003", "aaa-0499"};
  api_.slow = [this] { clock_.Advance(seconds(1)); };
  const telemetryserver::Reader first = Reader();
  EXPECT_EQ(first.namespaces, Names{"aaa-0003"});
  EXPECT_EQ(first.unasked, 601U - 250U);
  api_.slow = nullptr;
  clock_.Advance(seconds(10));
  EXPECT_EQ(Reader().namespaces, api_.mine);
  EXPECT_EQ(api_.Count("aaa-0250"), 1U) << "the next round continues";
}

TEST_F(ReaderRightsTest, ReviewsNamedNamespaceAtOnce) {
  api_.mine = {"zz", "not-known-here"};
  ASSERT_FALSE(Reader().May("zz"));
  EXPECT_TRUE(rights_.Sees(subject_, "zz").value_or(false));
  EXPECT_TRUE(rights_.Sees(subject_, "not-known-here").value_or(false))
      << "the namespace has past records";
  EXPECT_TRUE(Reader().May("zz")) << "visible from now on";
  EXPECT_FALSE(rights_.Sees(subject_, "aaa-0599").value_or(true));
  api_.Forget();
  EXPECT_FALSE(rights_.Sees(subject_, "aaa-0599").value_or(true));
  EXPECT_FALSE(rights_.Sees(subject_, "../aaa").value_or(true));
  EXPECT_FALSE(rights_.Sees(subject_, std::string(64, 'a')).value_or(true));
  EXPECT_EQ(api_.asked.size(), 0U);
  clock_.Advance(seconds(61));
  api_.mine = {};
  EXPECT_FALSE(Reader().May("zz"));
}

TEST_F(ReaderRightsTest, LimitsNamesPerMinute) {
  Reader();
  for (size_t i = 0; i < ReaderRights::kMaxNamed; ++i) {
    EXPECT_TRUE(rights_.Sees(subject_, fmt::format("guess-{}", i)).ok());
  }
  EXPECT_EQ(rights_.Sees(subject_, "guess").status().code(), Code::kExhausted);
  clock_.Advance(seconds(61));
  Reader();
  EXPECT_TRUE(rights_.Sees(subject_, "guess").ok());
}

TEST_F(ReaderRightsTest, ConcurrentCallersShareOneAnswer) {
  api_.held = true;
  std::vector<std::thread> threads;
  std::atomic<int> came = 0, refused = 0;
  std::condition_variable over;
  std::mutex mutex;
  for (int i = 0; i < 24; ++i) {
    threads.emplace_back([&] {
      const bool ok = rights_.Of(subject_).ok();
      const std::scoped_lock lock(mutex);
      ++(ok ? came : refused);
      over.notify_all();
    });
  }
  {
    // Further callers are rejected, which leaves threads for reporters.
    std::unique_lock lock(mutex);
    over.wait(lock, [&] { return refused == 4; });
  }
  api_.Release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(came, 20);
  EXPECT_EQ(api_.asked.size(), 1U + ReaderRights::kAskFirst);
}

TEST_F(ReaderRightsTest, ReaderOfAllNamespacesDoesNotQueueBehindOthers) {
  api_.held = true;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(rights_.Of(Json{{"user", fmt::format("nobody-{}", i)}}).ok()); });
  }
  api_.AwaitGoes(4);
  api_.chief = "chief";
  const auto chief = rights_.Of(Json{{"user", "chief"}});
  EXPECT_TRUE(chief.ok() && chief->may_all) << chief.status().ToString();
  api_.Release();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ReaderRightsTest, SecondTokenOfUserSharesRights) {
  subject_ = {{"user", "sa"}, {"extra", {{"authentication.kubernetes.io/credential-id", {"1"}}}}};
  Reader();
  const size_t before = api_.asked.size();
  subject_ = {{"user", "sa"}, {"extra", {{"authentication.kubernetes.io/credential-id", {"2"}}}}};
  EXPECT_EQ(Reader().subject, subject_);
  EXPECT_EQ(api_.asked.size(), before);
  subject_ = {{"user", "sa"}, {"groups", {"more"}}};
  Reader();
  EXPECT_GT(api_.asked.size(), before);
}

TEST_F(ReaderRightsTest, FailedReviewIsNotCached) {
  api_.down = true;
  EXPECT_EQ(rights_.Of(subject_).status().code(), Code::kUnavailable);
  api_.down = false;
  api_.mine = {"zz"};
  Reader();
  api_.down = true;
  EXPECT_EQ(rights_.Sees(subject_, "zz").status().code(), Code::kUnavailable);
  api_.down = false;
  EXPECT_TRUE(rights_.Sees(subject_, "zz").value_or(false));
}

}  // namespace
}  // namespace nos::cmd
