// Grace periods of pods that lose what they borrow: tenants choose them.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

constexpr int64_t kYear = int64_t{365} * 24 * 3600;

// Quota a has no min and borrows; b and idle have a min of 1.
class SchedulerGraceTest : public ClaimsFixture {
 protected:
  SchedulerGraceTest() {
    CpuNodes({{"n1", "1"}, {"n2", "1"}});
    CpuQuotas({{"a", "0"}, {"b", "1"}, {"idle", "1"}});
    EndAfterGracePeriod();
  }
  void Borrow(const std::string& node, const std::string& name, int64_t grace) {
    PodWith("a", name, {{"cpu", "1"}}, 0, {},
            {{"nodeSelector", {{"name", node}}}, {"terminationGracePeriodSeconds", grace}});
    Run();
    ASSERT_EQ(At("a/" + name), node);
  }
  // Deletions are as the API server makes them; pods stay until the test removes them.
  void EndAfterGracePeriod() {
    api_.intercept = [this](const kube::ApiRequest& request) {
      std::optional<Result<kube::ApiResponse>> answer;
      if (request.method != "DELETE") return answer;
      const size_t begin = request.path.find("namespaces/") + 11;
      const size_t end = request.path.find('/', begin);
      const std::string key = request.path.substr(begin, end - begin) + "/" +
                              request.path.substr(request.path.rfind('/') + 1);
      const Json* asked = nos::Find(request.body, "gracePeriodSeconds");
      graces_.push_back(asked == nullptr ? -1 : asked->get_int64());
      Delete(key, asked == nullptr ? std::nullopt : std::optional(asked->get_int64()));
      answer = Result<kube::ApiResponse>(kube::ApiResponse{200, JsonObject{}, {}, {}});
      return answer;
    };
  }
  void Delete(const std::string& key, std::optional<int64_t> grace) {
    Json pod = *api_.Find("pods", key);
    const auto deleted = ParseTime(FindString(pod, "metadata", "deletionTimestamp"));
    const Json* own = nos::Find(pod, "spec", "terminationGracePeriodSeconds");
    const int64_t longest = own == nullptr ? 30 : own->get_int64();
    const Time since = deleted.ok() ? *deleted - seconds(longest) : clock_.Now() - server_behind_;
    MakeObject(pod, "metadata")["deletionTimestamp"] =
        FormatTime(since + seconds(grace.value_or(longest)));
    api_.Put(pod);
  }
  Time EndOf(const std::string& key) {
    return *ParseTime(FindString(*api_.Find("pods", key), "metadata", "deletionTimestamp"));
  }

  Duration server_behind_{};     // the API server's clock
  std::vector<int64_t> graces_;  // asked for by evictions; -1: the pod's own
};

TEST_F(SchedulerGraceTest, ShortensLongGracePeriodOfVictim) {
  Borrow("n1", "p", kYear);
  On("n1", "b", "q", "1");
  Run();
  EXPECT_EQ(At("a/p"), "ending");
  EXPECT_EQ(graces_, std::vector<int64_t>{300});
}

TEST_F(SchedulerGraceTest, KeepsShorterGracePeriodOfVictim) {
  Borrow("n1", "p", 300);
  On("n1", "b", "q", "1");
  Run();
  EXPECT_EQ(At("a/p"), "ending");
  EXPECT_EQ(graces_, std::vector<int64_t>{-1});
}

// Otherwise its object would vanish before its containers have stopped, and a scheduler that is
// restarted then would give its GPUs to the next pod.
TEST_F(SchedulerGraceTest, ObjectOfVictimWithoutGracePeriodStaysUntilItEnds) {
  Borrow("n1", "p", 0);
  On("n1", "b", "q", "1");
  PodWith("c", "r", {{"cpu", "1"}}, 0, {},
          {{"nodeSelector", {{"name", "n2"}}}, {"terminationGracePeriodSeconds", 0}});
  Run();
  On("n2", "c", "important", "1", 9);
  Run();
  EXPECT_EQ(At("a/p"), "ending");
  EXPECT_EQ(At("c/r"), "ending");
  EXPECT_EQ(graces_, (std::vector<int64_t>{1, 1}));
}

TEST_F(SchedulerGraceTest, KeepsGracePeriodOfVictimOfPriority) {
  PodWith("c", "p", {{"cpu", "1"}}, 0, {},
          {{"nodeSelector", {{"name", "n1"}}}, {"terminationGracePeriodSeconds", kYear}});
  Run();
  On("n1", "c", "q", "1", 9);
  Run();
  EXPECT_EQ(At("c/p"), "ending");
  EXPECT_EQ(graces_, std::vector<int64_t>{-1});
}

TEST_F(SchedulerGraceTest, EvictsPodThatItsOwnerDeletedWithLongGracePeriod) {
  Borrow("n1", "p", kYear);
  Delete("a/p", std::nullopt);
  Run();
  On("n1", "b", "q", "1");
  Run();
  EXPECT_EQ(graces_, std::vector<int64_t>{300});
  EXPECT_EQ(EndOf("a/p"), clock_.Now() + seconds(300));
  EXPECT_EQ(NomineeOf("b/q"), "n1");
  RunFor(seconds(60));
  EXPECT_EQ(graces_.size(), 1u) << "it leaves";
  api_.Remove("pods", "a/p");
  Run();
  EXPECT_EQ(At("b/q"), "n1") << WhyOf("b/q");
}

// Its new end is in the past for the API server, but the kubelet gives it another 300 s.
TEST_F(SchedulerGraceTest, WaitsForPodWhoseDeletionItShortens) {
  Borrow("n1", "p", kYear);
  Delete("a/p", std::nullopt);
  RunFor(seconds(1000));
  On("n1", "b", "q", "1");
  RunFor(seconds(300));
  EXPECT_EQ(graces_, std::vector<int64_t>{300});
  EXPECT_LT(EndOf("a/p"), clock_.Now() - seconds(900));
  EXPECT_EQ(NomineeOf("b/q"), "n1") << WhyOf("b/q");
  RunFor(seconds(100));
  EXPECT_EQ(NomineeOf("b/q"), "") << "its node does not end it";
  EXPECT_EQ(graces_.size(), 1u);
}

TEST_F(SchedulerGraceTest, DoesNotEvictPodThatItsOwnerDeletedWithShortGracePeriod) {
  Borrow("n1", "p", 300);
  Delete("a/p", std::nullopt);
  Run();
  On("n1", "b", "q", "1");
  RunFor(seconds(60));
  EXPECT_EQ(graces_, std::vector<int64_t>());
}

TEST_F(SchedulerGraceTest, EvictsMemberThatItsOwnerDeletedAndRestOfItsGang) {
  Group("a", "g", 2);
  for (const char* node : {"n1", "n2"}) {
    PodWith("a", node, {{"cpu", "1"}}, 0, {{"scheduling.x-k8s.io/pod-group", "g"}},
            {{"nodeSelector", {{"name", node}}}, {"terminationGracePeriodSeconds", kYear}});
  }
  Run();
  ASSERT_EQ(At("a/n1") + At("a/n2"), "n1n2");
  Delete("a/n1", std::nullopt);
  Run();
  On("n1", "b", "q1", "1");
  On("n2", "idle", "q2", "1");
  RunFor(seconds(60));
  EXPECT_EQ(graces_, (std::vector<int64_t>{300, 300}));
  EXPECT_EQ(Count({"a/n1", "a/n2"}, "ending"), 2);
}

TEST_F(SchedulerGraceTest, EvictsNextBorrowerWhenVictimIsOverdue) {
  Borrow("n1", "older", 30);
  Borrow("n2", "younger", 30);
  Pod("b", "q");
  RunFor(seconds(70));
  EXPECT_EQ(At("a/younger"), "ending");
  EXPECT_EQ(At("a/older"), "n1");
  RunFor(seconds(30));
  EXPECT_EQ(At("a/older"), "ending") << WhyOf("b/q");
  EXPECT_EQ(NomineeOf("b/q"), "n1");
  api_.Remove("pods", "a/older");
  Run();
  EXPECT_EQ(At("b/q"), "n1") << WhyOf("b/q");
}

// Each victim would otherwise be overdue when its deletion is seen.
TEST_F(SchedulerGraceTest, CountsGracePeriodFromWhenDeletionIsSeen) {
  server_behind_ = seconds(170);
  Borrow("n1", "older", 30);
  Borrow("n2", "younger", 30);
  NodeWith("n3", {{"cpu", "500m"}}, {{"name", "n3"}});
  On("n3", "kube-system", "leaves", "500m");
  Run();
  Pod("b", "q");
  Run();
  ASSERT_EQ(At("a/younger"), "ending");
  EXPECT_LE(EndOf("a/younger"), clock_.Now() - seconds(140));
  api_.Remove("pods", "kube-system/leaves");
  RunFor(seconds(70));
  EXPECT_EQ(At("a/older"), "n1");
  EXPECT_EQ(NomineeOf("b/q"), "n2");
  RunFor(seconds(30));
  EXPECT_EQ(At("a/older"), "ending") << "the younger one does not end";
}

// A scheduler of an earlier version has evicted it, or another scheduler.
TEST_F(SchedulerGraceTest, DoesNotWaitForVictimWithLongGracePeriodOfEarlierScheduler) {
  Borrow("n1", "p", kYear);
  EvictedByAnother("a/p", true);
  Json pod = *api_.Find("pods", "a/p");
  MakeObject(pod, "metadata")["deletionTimestamp"] = FormatTime(clock_.Now() + seconds(kYear));
  api_.Put(pod);
  On("n1", "b", "q", "1");
  Run();
  EXPECT_EQ(graces_, std::vector<int64_t>{300});
  EXPECT_EQ(EndOf("a/p"), clock_.Now() + seconds(300));
}

}  // namespace
}  // namespace nos::controllers
