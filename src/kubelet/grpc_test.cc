// Tests the client against our own server and against misbehaving peers.

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <atomic>

#include <podresources.pb.h>
#include "kubelet/fixture_test.h"
#include "kubelet/pod_resources_client.h"

namespace nos::kubelet {
namespace {

using testing::HasSubstr;

std::string Framed(const std::string& message) {
  std::string framed(5, '\0');
  framed[3] = static_cast<char>(message.size() >> 8);
  framed[4] = static_cast<char>(message.size());
  return framed + message;
}

std::string Taken(std::string& bytes) {
  const Result<std::optional<std::string>> message = TakeMessage(bytes, 100);
  return message.ok() ? message->value_or("nothing") : message.status().message();
}

TEST(Framing, TakesMessagesOneByOne) {
  std::string bytes = Framed("one") + Framed("") + Framed("three");
  const std::string last = bytes.substr(bytes.size() - 2);
  bytes.resize(bytes.size() - 2);
  EXPECT_EQ(Taken(bytes), "one");
  EXPECT_EQ(Taken(bytes), "");
  EXPECT_EQ(Taken(bytes), "nothing");
  bytes += last;
  EXPECT_EQ(Taken(bytes), "three");
  EXPECT_EQ(Taken(bytes), "nothing");
}

TEST(Framing, RefusesTooLongOrCompressedMessages) {
  std::string huge("\0\xff\xff\xff\xff", 5);
  EXPECT_EQ(TakeMessage(huge, 100).status().code(), Code::kInvalid);
  std::string compressed("\1\0\0\0\0", 5);
  EXPECT_EQ(TakeMessage(compressed, 100).status().code(), Code::kInvalid);
  EXPECT_EQ(OnlyMessage("", 100).status().code(), Code::kInvalid);
  EXPECT_EQ(OnlyMessage(Framed("a") + Framed("b"), 100).status().code(), Code::kInvalid);
}

class GrpcTest : public testing::Test {
 protected:
  void Serve(std::function<GrpcAnswer(std::string_view, const std::string&)> call) {
    ASSERT_TRUE(server_.Serve(socket_, {std::move(call), {"/x/Watch"}}).ok());
  }
  Result<std::string> Call(const std::string& request, CallOptions options = {}) {
    return UnaryCall(socket_, "/x/Method", request, options);
  }

  TemporaryFolder folder_;
  std::string socket_ = folder_ / "x.sock";
  std::error_code ignored_;
  GrpcServer server_{{}, [] {}};
};

TEST_F(GrpcTest, CarriesAnswersOfEverySize) {
  Serve([](std::string_view method, const std::string& request) {
    EXPECT_EQ(method, "/x/Method");
    return GrpcAnswer{GrpcCode::kOk, request + request};
  });
  for (const size_t size : {0U, 1U, 16384U, 65535U, 65536U, 500'000U}) {
    const std::string request(size, 'r');
    const auto answer = Call(request);
    ASSERT_TRUE(answer.ok()) << size << ": " << answer.status().message();
    EXPECT_EQ(*answer, request + request);
  }
}

TEST_F(GrpcTest, CarriesErrorStatus) {
  const std::string message = "100% wrong: ü\n";
  Serve([message](std::string_view, const std::string& code) {
    return code == "invalid" ? GrpcAnswer{GrpcCode::kInvalidArgument, message}
                             : GrpcAnswer{GrpcCode::kUnimplemented, "no"};
  });
  const auto invalid = Call("invalid");
  EXPECT_EQ(invalid.status().code(), Code::kInvalid);
  EXPECT_THAT(invalid.status().message(), HasSubstr(message));
  EXPECT_EQ(Call("").status().code(), Code::kUnimplemented);
}

TEST_F(GrpcTest, LimitsMessageSizeInBothDirections) {
  Serve([](std::string_view, const std::string&) {
    return GrpcAnswer{GrpcCode::kOk, std::string(100'000, 'a')};
  });
  EXPECT_EQ(Call("", {.max_answer = 99'999}).status().code(), Code::kExhausted);
  EXPECT_TRUE(Call("", {.max_answer = 100'000}).ok());
  EXPECT_FALSE(Call(std::string(2 << 20, 'r')).ok());
  EXPECT_TRUE(Call("").ok());  // the server survives
}

TEST_F(GrpcTest, ServesConcurrentCallers) {
  Serve([](std::string_view, const std::string& request) {
    return GrpcAnswer{GrpcCode::kOk, request};
  });
  std::atomic<int> wrong = 0;
  std::list<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, request = std::string(1000, static_cast<char>('a' + i))] {
      for (int n = 0; n < 50; ++n) {
        const Result<std::string> answer = Call(request);
        if (!answer.ok() || *answer != request) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(GrpcTest, ReportsSocketErrors) {
  const auto missing = Call("");
  EXPECT_EQ(missing.status().code(), Code::kUnavailable);
  EXPECT_THAT(missing.status().message(), HasSubstr(socket_));
  EXPECT_EQ(UnaryCall(std::string(200, 'x'), "/x", "", {}).status().code(), Code::kInvalid);
}

TEST_F(GrpcTest, ReportsMissingPermissionToConnect) {
  Serve([](std::string_view, const std::string&) { return GrpcAnswer{}; });
  // Runs in a child process, as a user without access to the directory.
  const auto as_nobody = [this] {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::none, ignored_);
    _exit(Call("").status().code() == Code::kPermission ? 0 : 2);
  };
  EXPECT_EXIT(as_nobody(), testing::ExitedWithCode(0), "");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
}

// A peer controlled through its raw socket.
class BarePeer : public testing::Test {
 protected:
  Result<std::string> CallAndAnswer(const std::string& bytes, bool hang_up) {
    std::thread peer([&] {
      pollfd ready{listener_.get(), POLLIN, 0};
      poll(&ready, 1, -1);
      UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      // The caller may close the connection at the first unreadable bytes.
      EXPECT_GE(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
      if (!hang_up) std::swap(held_, fd);
    });
    auto answer = UnaryCall(socket_, "/x/Method", "", {.timeout = timeout_});
    peer.join();
    return answer;
  }

  TemporaryFolder folder_;
  std::string socket_ = folder_ / "x.sock";
  UniqueFd listener_ = ListenUnix(socket_).value();
  UniqueFd held_;
  Duration timeout_ = kLong;
};

TEST_F(BarePeer, ClientRefusesInvalidBytes) {
  EXPECT_EQ(CallAndAnswer("HTTP/1.1 400 Bad Request\r\n\r\n", false).status().code(),
            Code::kUnavailable);
  EXPECT_EQ(CallAndAnswer(std::string(100'000, '\xff'), false).status().code(), Code::kUnavailable);
}

TEST_F(BarePeer, ClientReportsClosedConnection) {
  EXPECT_EQ(CallAndAnswer("", true).status().code(), Code::kUnavailable);
}

TEST_F(BarePeer, ClientTimesOutOnSilentPeer) {
  timeout_ = std::chrono::milliseconds(30);
  const auto answer = CallAndAnswer("", false);
  EXPECT_EQ(answer.status().code(), Code::kDeadline);
  EXPECT_THAT(answer.status().message(), HasSubstr("0.03 s"));
}

TEST_F(BarePeer, ClientStopsOnCancel) {
  WakeUp cancel;
  cancel.Signal();
  const auto answer =
      UnaryCall(socket_, "/x/Method", "", {.timeout = kLong, .cancel_fd = cancel.fd()});
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
}

class PodResourcesTest : public GrpcTest {
 protected:
  // Adds the container "main" of the pod team-a/train-0 to the kubelet's list.
  static v1::ContainerResources& AddContainer(v1::ListPodResourcesResponse& list) {
    v1::PodResources& pod = *list.add_pod_resources();
    pod.set_namespace_("team-a");
    pod.set_name("train-0");
    v1::ContainerResources& container = *pod.add_containers();
    container.set_name("main");
    return container;
  }

  PodResourcesClient client_{{.socket = socket_}};
};

TEST_F(PodResourcesTest, ListsAssignedDevices) {
  Serve([](std::string_view method, const std::string&) {
    EXPECT_EQ(method, "/v1.PodResourcesLister/List");
    v1::ListPodResourcesResponse list;
    v1::ContainerResources& container = AddContainer(list);
    v1::ContainerDevices& devices = *container.add_devices();
    devices.set_resource_name("nvidia.com/mig-1g.5gb");
    devices.add_device_ids("MIG-a");
    devices.add_device_ids("MIG-b");
    container.add_devices()->set_resource_name("intel.com/qat");
    return GrpcAnswer{GrpcCode::kOk, list.SerializeAsString()};
  });
  const auto held = client_.List();
  ASSERT_TRUE(held.ok()) << held.status().message();
  ASSERT_EQ(held->size(), 2U);
  EXPECT_EQ((*held)[0].ns + "/" + (*held)[0].pod, "team-a/train-0");
  EXPECT_EQ((*held)[0].container, "main");
  EXPECT_EQ((*held)[0].resource, "nvidia.com/mig-1g.5gb");
  EXPECT_EQ((*held)[1].device_id, "MIG-b");
}

TEST_F(PodResourcesTest, ListsDevicesOfResourceClaims) {
  Serve([](std::string_view, const std::string&) {
    v1::ListPodResourcesResponse list;
    v1::ContainerResources& container = AddContainer(list);
    container.add_devices()->set_resource_name("nvidia.com/gpu");
    v1::DynamicResource& claim = *container.add_dynamic_resources();
    claim.set_claim_name("slices");
    for (const char* device : {"gpu-0-mig-1g10gb-19-0", "gpu-1"}) {
      v1::ClaimResource& resource = *claim.add_claim_resources();
      resource.set_driver_name("gpu.nvidia.com");
      resource.set_pool_name("node-a");
      resource.set_device_name(device);
    }
    return GrpcAnswer{GrpcCode::kOk, list.SerializeAsString()};
  });
  const auto claimed = client_.ListClaims();
  ASSERT_TRUE(claimed.ok()) << claimed.status().message();
  ASSERT_EQ(claimed->size(), 2U);
  EXPECT_EQ((*claimed)[0].ns + "/" + (*claimed)[0].pod, "team-a/train-0");
  EXPECT_EQ((*claimed)[0].container, "main");
  EXPECT_EQ((*claimed)[0].driver, "gpu.nvidia.com");
  EXPECT_EQ((*claimed)[1].device, "gpu-1");
}

TEST_F(PodResourcesTest, MapsReplicaToItsDevice) {
  Serve([](std::string_view method, const std::string&) {
    v1::ContainerDevices devices;
    devices.set_resource_name("nvidia.com/mig-1g.5gb");
    for (const char* id : {"MIG-a::0", "MIG-a::1"}) devices.add_device_ids(id);
    if (method.ends_with("List")) {
      v1::ListPodResourcesResponse list;
      *list.add_pod_resources()->add_containers()->add_devices() = devices;
      return GrpcAnswer{GrpcCode::kOk, list.SerializeAsString()};
    }
    v1::AllocatableResourcesResponse all;
    *all.add_devices() = devices;
    return GrpcAnswer{GrpcCode::kOk, all.SerializeAsString()};
  });
  const auto held = client_.List();
  ASSERT_TRUE(held.ok()) << held.status().message();
  ASSERT_EQ(held->size(), 2U);
  EXPECT_EQ((*held)[1].device_id, "MIG-a");
  const auto allocatable = client_.Allocatable();
  ASSERT_TRUE(allocatable.ok()) << allocatable.status().message();
  ASSERT_EQ(allocatable->size(), 1U);
  EXPECT_EQ(allocatable->front().device_id, "MIG-a");
}

TEST_F(PodResourcesTest, ReturnsMpsSharesIfConfigured) {
  Serve([](std::string_view, const std::string&) {
    v1::ListPodResourcesResponse list;
    v1::ContainerDevices& devices = *list.add_pod_resources()->add_containers()->add_devices();
    devices.set_resource_name("nvidia.com/gpu-10gb");
    for (const char* id : {"GPU-a::10::3", "GPU-a::0", "GPU-b"}) devices.add_device_ids(id);
    return GrpcAnswer{GrpcCode::kOk, list.SerializeAsString()};
  });
  const auto ids = [](PodResourcesClient& client) {
    std::vector<std::string> listed;
    const auto held = client.List();
    for (const DeviceAssignment& one : *held) listed.push_back(one.device_id);
    return listed;
  };
  EXPECT_EQ(ids(client_), (std::vector<std::string>{"GPU-a", "GPU-a", "GPU-b"}));
  PodResourcesClient own({.socket = socket_, .mps_shares = true});
  EXPECT_EQ(ids(own), (std::vector<std::string>{"GPU-a::10::3", "GPU-a", "GPU-b"}));
}

TEST_F(PodResourcesTest, ListsAllocatableDevices) {
  Serve([](std::string_view, const std::string&) {
    v1::AllocatableResourcesResponse answer;
    for (const char* id : {"MIG-b", "MIG-a"}) {
      v1::ContainerDevices& devices = *answer.add_devices();
      devices.set_resource_name("nvidia.com/mig-1g.5gb");
      devices.add_device_ids(id);
    }
    return GrpcAnswer{GrpcCode::kOk, answer.SerializeAsString()};
  });
  const auto allocatable = client_.Allocatable();
  ASSERT_TRUE(allocatable.ok()) << allocatable.status().message();
  ASSERT_EQ(allocatable->size(), 2U);
  EXPECT_EQ((*allocatable)[0].device_id, "MIG-a");
}

TEST_F(PodResourcesTest, RefusesInvalidMessage) {
  Serve([](std::string_view, const std::string&) {
    return GrpcAnswer{GrpcCode::kOk, "\x0a\xff\xff\xff\xff\x0f"};
  });
  const auto held = client_.List();
  EXPECT_EQ(held.status().code(), Code::kUnavailable);
  EXPECT_THAT(held.status().message(), HasSubstr("not readable"));
}

}  // namespace
}  // namespace nos::kubelet
