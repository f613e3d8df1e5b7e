#include "sim/world/checks/device_checker.h"

#include <gtest/gtest.h>

#include "sim/api_server.h"
#include "sim/world/events/world_clock.h"

namespace nos::sim {
namespace {

const kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
const kube::Resource kClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true};

Json FromText(std::string_view text) { return ParseJson(text).value(); }

class DeviceCheckerTest : public testing::Test {
 protected:
  DeviceCheckerTest() {
    AddSlice("counters", R"("sharedCounters":[{"name":"s","counters":{"slots":{"value":"2"}}}])");
    AddSlice("devices", R"("devices":[{"name":"plain"},)" + Part("a", 1) + "," + Part("b", 1) +
                            "," + Part("c", 2) + "]");
  }
  static std::string Part(const std::string& name, int slots) {
    return R"({"name":")" + name + R"(","consumesCounters":[{"counterSet":"s",
        "counters":{"slots":{"value":")" +
           std::to_string(slots) + R"("}}}]})";
  }
  void AddSlice(const std::string& name, const std::string& content) {
    const auto made = client_.Create(kSlices, "",
                                     FromText(R"({"metadata":{"name":")" + name +
                                              R"("},"spec":{"driver":"d.example.com",
        "pool":{"name":"n","generation":1,"resourceSliceCount":2},"nodeName":"n",)" +
                                              content + "}}"));
    EXPECT_TRUE(made.ok()) << made.status().ToString();
  }
  // Returns the number of new problems.
  size_t Give(const std::string& claim, const std::string& device, const std::string& more = "") {
    EXPECT_TRUE(client_
                    .Create(kClaims, "default",
                            FromText(R"({"metadata":{"name":")" + claim +
                                     R"("},"spec":{"devices":{"requests":[
        {"name":"r","exactly":{"deviceClassName":"c"}}]}}})"))
                    .ok());
    const auto given =
        client_.Patch(kClaims, "default", claim, kube::PatchType::kMerge,
                      FromText(R"({"status":{"allocation":{"devices":{"results":[{"request":"r",
            "driver":"d.example.com","pool":"n","device":")" +
                               device + "\"" + more + "}]}}}}"),
                      "status");
    EXPECT_TRUE(given.ok()) << given.status().ToString();
    return Look();
  }
  size_t Free(const std::string& claim) {
    EXPECT_TRUE(client_
                    .Patch(kClaims, "default", claim, kube::PatchType::kMerge,
                           FromText(R"({"status":{"allocation":null}})"), "status")
                    .ok());
    return Look();
  }
  size_t Look() {
    checker_.Watch(clock_.Now());
    return checker_.TakeProblems().size();
  }

  WorldClock clock_{Time(std::chrono::seconds(1'767'225'600))};
  ApiServer api_{clock_};
  kube::Client client_{api_};
  DeviceChecker checker_{api_};
};

TEST_F(DeviceCheckerTest, AllocationsWithinTheCountersAreGood) {
  EXPECT_EQ(Give("one", "a"), 0U);
  EXPECT_EQ(Give("two", "b"), 0U);
  EXPECT_EQ(Give("three", "plain"), 0U);
  EXPECT_EQ(checker_.allocated(), 3);
  EXPECT_EQ(checker_.DevicesOf("default/one"), (std::vector<std::string>{"n/a"}));
  EXPECT_EQ(Free("one") + Free("two"), 0U);
  EXPECT_EQ(Give("four", "c"), 0U);
  EXPECT_EQ(checker_.allocated(), 2);
}

TEST_F(DeviceCheckerTest, SameDeviceTwiceIsAProblem) {
  EXPECT_EQ(Give("one", "plain"), 0U);
  EXPECT_EQ(Give("two", "plain"), 1U);
}

TEST_F(DeviceCheckerTest, CounterBeyondItsLimitIsAProblem) {
  EXPECT_EQ(Give("one", "c"), 0U);
  EXPECT_EQ(Give("two", "a"), 1U);
}

TEST_F(DeviceCheckerTest, DeviceThatIsNotAnnouncedIsAProblem) {
  EXPECT_EQ(Give("one", "other"), 1U);
}

TEST_F(DeviceCheckerTest, MonitorsAndSharesAreNotExclusive) {
  EXPECT_EQ(Give("one", "plain"), 0U);
  EXPECT_EQ(Give("two", "plain", R"(,"adminAccess":true)"), 0U);
  EXPECT_EQ(Give("three", "plain", R"(,"shareID":"e5d3c3c0-0000-4000-8000-000000000000")"), 0U);
}

TEST_F(DeviceCheckerTest, SharesBeyondTheCapacityAreAProblem) {
  AddSlice("shared", R"("devices":[{"name":"nic","allowMultipleAllocations":true,
      "capacity":{"bandwidth":{"value":"10Gi"}}}])");
  const auto share = [&](const std::string& claim, int number, const std::string& amount) {
    return Give(claim, "nic",
                R"(,"shareID":"e5d3c3c0-0000-4000-8000-00000000000)" + std::to_string(number) +
                    R"(","consumedCapacity":{"bandwidth":")" + amount + R"("})");
  };
  EXPECT_EQ(share("one", 1, "6Gi"), 0U);
  EXPECT_EQ(share("two", 2, "4Gi"), 0U);
  EXPECT_EQ(share("three", 3, "1Gi"), 1U);
}

// A scheduler may not know yet that the device is gone.
TEST_F(DeviceCheckerTest, DeviceThatIsGoneCountsForAWhile) {
  Look();
  EXPECT_TRUE(client_.Delete(kSlices, "", "devices").ok());
  Look();
  clock_.AdvanceTo(clock_.Now() + std::chrono::minutes(1));
  EXPECT_EQ(Give("one", "a"), 0U);
  clock_.AdvanceTo(clock_.Now() + std::chrono::minutes(2));
  EXPECT_EQ(Give("two", "b"), 1U);
}

TEST_F(DeviceCheckerTest, DeletedClaimGivesItsDevicesBack) {
  EXPECT_EQ(Give("one", "c"), 0U);
  EXPECT_TRUE(client_.Delete(kClaims, "default", "one").ok());
  EXPECT_EQ(Give("two", "c"), 0U);
}

}  // namespace
}  // namespace nos::sim
