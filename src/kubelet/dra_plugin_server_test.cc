#include "kubelet/dra_plugin_server.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <map>

#include "kubelet/fixture_test.h"
#include "kubelet/testing/dra_kubelet.h"

namespace nos::kubelet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Answers at once, or holds the answer until Release().
class FakeDriver final : public DraDriver {
 public:
  void Prepare(const ClaimReference& claim, Prepared done) override {
    std::unique_lock lock(mutex_);
    asked_.push_back(claim);
    if (claim.name == "held") {
      held_.push_back([=, done = std::move(done)] { done(DevicesOf(claim)); });
      changed_.notify_all();
      return;
    }
    lock.unlock();
    if (claim.name == "bad") return done(Status(Code::kUnavailable, "GPU 0 is lost"));
    done(DevicesOf(claim));
  }
  void Unprepare(const ClaimReference& claim, Unprepared done) override {
    done(claim.name == "bad" ? Status(Code::kUnavailable, "disk full") : Status::Ok());
  }
  static std::vector<PreparedDevice> DevicesOf(const ClaimReference& claim) {
    return {{{"slice"}, "gpu-1", claim.name, {"nos.nebuly.com/claim=" + claim.uid}, ""}};
  }
  bool WaitForHeld() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return !held_.empty(); });
  }
  void Release() {
    for (const auto& answer : held_) answer();
    held_.clear();
  }
  std::vector<ClaimReference> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ClaimReference> asked_;
  std::vector<std::function<void()>> held_;
};

class DraPluginServerTest : public testing::Test {
 protected:
  void Serve() {
    server_ = std::make_unique<DraPluginServer>(
        DraPluginOptions{"gpu.example.com", folder_ / "plugins", folder_ / "registry"}, driver_);
    const Status kept = server_->Keep();
    ASSERT_TRUE(kept.ok()) << kept.message();
  }
  void SetUp() override {
    Serve();
    ASSERT_TRUE(kubelet_.Register("gpu.example.com").ok());
  }

  TemporaryFolder folder_;
  FakeDriver driver_;
  std::unique_ptr<DraPluginServer> server_;
  DraKubelet kubelet_{folder_ / "registry"};
};

TEST_F(DraPluginServerTest, RegistersAsKubeletsExpect) {
  EXPECT_EQ(kubelet_.type(), "DRAPlugin");
  EXPECT_EQ(kubelet_.name(), "gpu.example.com");
  EXPECT_EQ(kubelet_.endpoint(), folder_ / "plugins/gpu.example.com/dra.sock");
  EXPECT_THAT(kubelet_.versions(),
              ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth",
                          "v1.DRAResourceHealth"));
  EXPECT_TRUE(server_->Registration().ok());
  EXPECT_TRUE(kubelet_.Register("gpu.example.com", "too old").ok());
  EXPECT_THAT(server_->Registration().message(), HasSubstr("too old"));
}

TEST_F(DraPluginServerTest, PublishesHealthToWatches) {
  const std::vector<DeviceHealth> health = {{"gpu-0", true}, {"gpu-1", false, "restart the node"}};
  server_->PublishHealth("node", health, Time(std::chrono::seconds(100)), std::chrono::seconds(90));
  for (const char* version : {"v1alpha1", "v1"}) {
    const auto read = kubelet_.Health(version);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, health);
  }
  server_->PublishHealth("node", {{"gpu-0", false, std::string(2000, 'x')}}, Time(), {});
  EXPECT_EQ(kubelet_.Health()->front().message.size(), 1000U) << "kubelets take 1024 characters";
  EXPECT_TRUE(kubelet_.Prepare({{"team", "a", "uid-a"}}).ok()) << "a watch is in no call's way";
}

TEST_F(DraPluginServerTest, AnswersForEachClaim) {
  for (const char* version : {"v1", "v1beta1"}) {
    const auto prepared =
        kubelet_.Prepare({{"team", "a", "uid-a"}, {"team", "bad", "uid-b"}}, version);
    ASSERT_TRUE(prepared.ok()) << prepared.status().message();
    ASSERT_EQ(prepared->size(), 2U);
    ASSERT_TRUE(prepared->at("uid-a").ok());
    EXPECT_EQ(*prepared->at("uid-a"), FakeDriver::DevicesOf({"team", "a", "uid-a"}));
    EXPECT_EQ(prepared->at("uid-b").status().message(), "GPU 0 is lost");
    const auto taken =
        kubelet_.Unprepare({{"team", "a", "uid-a"}, {"team", "bad", "uid-b"}}, version);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_TRUE(taken->at("uid-a").ok());
    EXPECT_EQ(taken->at("uid-b").message(), "disk full");
  }
  EXPECT_EQ(driver_.asked().front(), (ClaimReference{"team", "a", "uid-a"}));
}

// Claims of other pods go on while one waits for its GPU.
TEST_F(DraPluginServerTest, ServesOthersWhileOneClaimWaits) {
  Result<DraKubelet::Devices> slow = Internal("no answer");
  std::thread caller([&] { slow = kubelet_.Prepare({{"team", "held", "uid-h"}}); });
  ASSERT_TRUE(driver_.WaitForHeld());
  EXPECT_TRUE(kubelet_.Prepare({{"team", "a", "uid-a"}}).ok());
  driver_.Release();
  caller.join();
  ASSERT_TRUE(slow.ok()) << slow.status().message();
  EXPECT_TRUE(slow->at("uid-h").ok());
}

TEST_F(DraPluginServerTest, RefusesWhatNoKubeletSends) {
  const auto code = [&](std::vector<ClaimReference> claims) {
    return kubelet_.Prepare(claims).status().code();
  };
  EXPECT_EQ(code({{"team", "a", ""}}), Code::kInvalid);
  EXPECT_EQ(code({{"team", "a", "../../etc"}}), Code::kInvalid);
  EXPECT_EQ(code({{"team", "a", std::string(200, 'u')}}), Code::kInvalid);
  EXPECT_EQ(code({{"team", "", "u"}}), Code::kInvalid);
  EXPECT_EQ(code({{"team", "a", "u"}, {"team", "b", "u"}}), Code::kInvalid);
  std::vector<ClaimReference> many;
  for (int i = 0; i < 300; ++i) many.push_back({"team", "a", "u" + std::to_string(i)});
  EXPECT_EQ(code(many), Code::kInvalid);
  EXPECT_TRUE(driver_.asked().empty());
  const auto call = [&](const std::string& method, const std::string& bytes) {
    return UnaryCall(kubelet_.endpoint(), method, bytes, {}).status().code();
  };
  const std::string service = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/";
  EXPECT_EQ(call(service + "NodePrepareResources", "\xff\xff"), Code::kInvalid);
  EXPECT_EQ(call(service + "NodeUnprepareResources", "\xff\xff"), Code::kInvalid);
  EXPECT_EQ(call(service + "Other", ""), Code::kUnimplemented);
  EXPECT_EQ(call("/k8s.io.kubelet.pkg.apis.dra.v9.DRAPlugin/NodePrepareResources", ""),
            Code::kUnimplemented);
  EXPECT_TRUE(kubelet_.Prepare({}).ok());
  EXPECT_TRUE(kubelet_.Prepare({{"team", "a", "uid-a"}}).ok()) << "the server survives";
}

TEST_F(DraPluginServerTest, ReplacesStaleSocketsAndRestoresRemovedOnes) {
  server_.reset();
  for (const char* name :
       {"plugins/gpu.example.com/dra.sock", "registry/gpu.example.com-reg.sock"}) {
    EXPECT_FALSE(std::filesystem::exists(folder_ / name)) << name;
    ASSERT_TRUE(ListenUnix(folder_ / name).ok()) << "a socket on which nobody listens";
  }
  Serve();
  EXPECT_TRUE(kubelet_.Register("gpu.example.com").ok());
  std::filesystem::remove_all(folder_ / "registry");
  std::filesystem::remove_all(folder_ / "plugins");
  ASSERT_TRUE(server_->Keep().ok());
  EXPECT_TRUE(kubelet_.Register("gpu.example.com").ok());
  EXPECT_TRUE(kubelet_.Prepare({{"team", "a", "uid-a"}}).ok());
}

// Kubelets try to register every visible file that appears in the folder.
TEST_F(DraPluginServerTest, ShowsOnlyTheSocketsThemselves) {
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "registry")) {
    EXPECT_EQ(file.path().filename(), "gpu.example.com-reg.sock");
  }
  DraPluginServer far({"gpu.example.com", folder_ / std::string(120, 'x'), folder_ / "registry"},
                      driver_);
  EXPECT_EQ(far.Keep().code(), Code::kInvalid);
}

}  // namespace
}  // namespace nos::kubelet
