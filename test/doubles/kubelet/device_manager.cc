#include "doubles/kubelet/device_manager.h"

#include <deviceplugin.grpc.pb.h>
#include <fmt/core.h>
#include <grpcpp/grpcpp.h>
#include <podresources.grpc.pb.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <list>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__)
// grpc++ is not built with ThreadSanitizer, so its synchronisation is invisible to it.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\ncalled_from_lib:libgrpc++.so\nrace:grpc::\nrace:grpc_\n";
}
#endif

namespace nos::doubles {
namespace {

namespace fs = std::filesystem;
using Lock = std::unique_lock<std::mutex>;
constexpr const char* kCheckpoint = "kubelet_internal_checkpoint";

// Same rule as validation of extended resources: a name with a domain other than Kubernetes' own.
bool IsExtendedResource(const std::string& name) {
  const size_t slash = name.find('/');
  return slash != std::string::npos && name.find("kubernetes.io/") == std::string::npos &&
         !name.starts_with("requests.");
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Listens on one unix socket.
std::unique_ptr<grpc::Server> Serve(const std::string& socket, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) throw std::runtime_error("cannot listen on " + socket);
  return server;
}

// One registered plugin, and the thread that watches its list.
struct Endpoint {
  std::string resource;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext watch;
  std::thread thread;
  bool has_preferences = false;
  bool ended = false;
  std::chrono::steady_clock::time_point ended_at{};
};

}  // namespace

struct KubeletDouble::Impl {
  class RegistrationService final : public v1beta1::Registration::Service {
   public:
    explicit RegistrationService(Impl& impl) : impl_(impl) {}
    grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                          v1beta1::Empty*) override {
      return impl_.Register(*request);
    }

   private:
    Impl& impl_;
  };

  class PodResourcesService final : public v1::PodResourcesLister::Service {
   public:
    explicit PodResourcesService(Impl& impl) : impl_(impl) {}
    grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                      v1::ListPodResourcesResponse* answer) override {
      return impl_.List(*answer);
    }
    grpc::Status GetAllocatableResources(grpc::ServerContext*,
                                         const v1::AllocatableResourcesRequest*,
                                         v1::AllocatableResourcesResponse* answer) override {
      const Lock lock(impl_.mutex);
      for (const auto& [resource, ids] : impl_.ledger.Healthy()) {
        for (const std::string& id : ids) {
          v1::ContainerDevices& devices = *answer->add_devices();
          devices.set_resource_name(resource);
          devices.add_device_ids(id);
        }
      }
      return grpc::Status::OK;
    }

   private:
    Impl& impl_;
  };

  void Start();
  void Stop();
  void EmptyFolder() const;
  grpc::Status Register(const v1beta1::RegisterRequest& request);
  grpc::Status List(v1::ListPodResourcesResponse& answer);
  void Watch(Endpoint& endpoint);
  Ids Preferred(const std::string& resource, int64_t count);
  Result<Admission> Allocate(const std::string& resource, const Ids& ids);
  std::shared_ptr<Endpoint> Current(const std::string& resource);
  void Changed();

  KubeletOptions options;
  KubeletFaults faults;
  RegistrationService registration{*this};
  PodResourcesService pod_resources{*this};

  mutable std::mutex mutex;  // guards all members below
  mutable std::condition_variable changed;
  DeviceLedger ledger;
  std::map<std::string, std::shared_ptr<Endpoint>> endpoints;  // by resource
  std::list<std::shared_ptr<Endpoint>> all;                    // including replaced ones
  int registrations = 0;
  bool running = false;
  std::unique_ptr<grpc::Server> registration_server, pod_resources_server;
};

void KubeletDouble::Impl::EmptyFolder() const {
  for (const auto& file : fs::directory_iterator(options.plugins)) {
    if (!file.is_directory() && file.path().filename() != kCheckpoint) fs::remove(file);
  }
}

void KubeletDouble::Impl::Start() {
  fs::create_directories(options.plugins);
  fs::create_directories(fs::path(options.pod_resources).parent_path());
  EmptyFolder();
  {
    const Lock lock(mutex);
    ledger = {};
    const fs::path checkpoint = fs::path(options.plugins) / kCheckpoint;
    if (fs::exists(checkpoint)) {
      // Like the kubelet: continues without an unreadable checkpoint.
      if (!ledger.ReadCheckpoint(ReadFile(checkpoint)).ok()) ledger = {};
    }
    running = true;
  }
  fs::remove(options.pod_resources);
  pod_resources_server = Serve(options.pod_resources, pod_resources);
  registration_server = Serve(options.plugins + "/kubelet.sock", registration);
}

void KubeletDouble::Impl::Stop() {
  std::list<std::shared_ptr<Endpoint>> ending;
  {
    const Lock lock(mutex);
    if (!std::exchange(running, false)) return;
    ending.swap(all);
    endpoints.clear();
  }
  for (const auto& endpoint : ending) endpoint->watch.TryCancel();
  const auto now = std::chrono::system_clock::now();
  registration_server->Shutdown(now);
  pod_resources_server->Shutdown(now);
  registration_server->Wait();
  pod_resources_server->Wait();
  for (const auto& endpoint : ending) endpoint->thread.join();
}

// REQUIRES: mutex is held.
void KubeletDouble::Impl::Changed() {
  std::ofstream(options.plugins + "/" + kCheckpoint) << ledger.WriteCheckpoint();
  changed.notify_all();
}

grpc::Status KubeletDouble::Impl::Register(const v1beta1::RegisterRequest& request) {
  if (faults.before_register) faults.before_register();
  if (request.version() != "v1beta1") {
    return {grpc::StatusCode::UNKNOWN, "requested API version is not supported by kubelet"};
  }
  if (!IsExtendedResource(request.resource_name())) {
    return {grpc::StatusCode::UNKNOWN, "the ResourceName is invalid: " + request.resource_name()};
  }
  grpc::ChannelArguments own_connection;
  own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel =
      grpc::CreateCustomChannel("unix:" + options.plugins + "/" + request.endpoint(),
                                grpc::InsecureChannelCredentials(), own_connection);
  const auto deadline = std::chrono::system_clock::now() + options.dial;
  if (!channel->WaitForConnected(deadline)) {
    return {grpc::StatusCode::UNKNOWN, "failed to dial device plugin: context deadline exceeded"};
  }
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->resource = request.resource_name();
  endpoint->stub = v1beta1::DevicePlugin::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(deadline);
  v1beta1::DevicePluginOptions plugin_options;
  const grpc::Status answered =
      endpoint->stub->GetDevicePluginOptions(&context, {}, &plugin_options);
  if (!answered.ok()) return {grpc::StatusCode::UNKNOWN, answered.error_message()};
  endpoint->has_preferences = plugin_options.get_preferred_allocation_available();
  const Lock lock(mutex);
  if (!running) return {grpc::StatusCode::UNAVAILABLE, "the kubelet is stopping"};
  ++registrations;
  std::shared_ptr<Endpoint>& current = endpoints[request.resource_name()];
  if (current != nullptr) current->watch.TryCancel();
  current = endpoint;
  all.push_back(endpoint);
  endpoint->thread = std::thread([this, endpoint] { Watch(*endpoint); });
  changed.notify_all();
  return grpc::Status::OK;
}

void KubeletDouble::Impl::Watch(Endpoint& endpoint) {
  const auto stream = endpoint.stub->ListAndWatch(&endpoint.watch, {});
  v1beta1::ListAndWatchResponse list;
  while (stream->Read(&list)) {
    Ids healthy, unhealthy;
    for (const v1beta1::Device& device : list.devices()) {
      (device.health() == "Healthy" ? healthy : unhealthy).insert(device.id());
    }
    const Lock lock(mutex);
    ledger.SetDevices(endpoint.resource, std::move(healthy), std::move(unhealthy));
    Changed();
  }
  const Lock lock(mutex);
  endpoint.ended = true;
  endpoint.ended_at = std::chrono::steady_clock::now();
  const auto current = endpoints.find(endpoint.resource);
  if (current == endpoints.end() || current->second.get() != &endpoint) return;
  ledger.MarkUnhealthy(endpoint.resource);
  Changed();
}

grpc::Status KubeletDouble::Impl::List(v1::ListPodResourcesResponse& answer) {
  if (faults.before_list) faults.before_list();
  if (faults.list_code != 0) {
    return {static_cast<grpc::StatusCode>(faults.list_code), "rejected by rate limit"};
  }
  const auto add = [&](const Holding& holding) {
    v1::PodResources& pod = *answer.add_pod_resources();
    pod.set_namespace_(holding.ns);
    pod.set_name(holding.pod);
    v1::ContainerResources& container = *pod.add_containers();
    container.set_name(holding.container);
    v1::ContainerDevices& devices = *container.add_devices();
    devices.set_resource_name(holding.resource);
    for (const std::string& id : holding.ids) devices.add_device_ids(id);
  };
  const Lock lock(mutex);
  for (const Holding& holding : ledger.holdings()) add(holding);
  for (int64_t i = 0; i < faults.invented_pods; ++i) {
    add({"invented", fmt::format("pod-{}", i), "main", "nvidia.com/gpu", {"GPU-x"}});
  }
  return grpc::Status::OK;
}

std::shared_ptr<Endpoint> KubeletDouble::Impl::Current(const std::string& resource) {
  const Lock lock(mutex);
  const auto found = endpoints.find(resource);
  return found == endpoints.end() || found->second->ended ? nullptr : found->second;
}

// Like the kubelet: asks if there is a choice, and ignores an answer of another size.
Ids KubeletDouble::Impl::Preferred(const std::string& resource, int64_t count) {
  const auto endpoint = Current(resource);
  if (endpoint == nullptr || !endpoint->has_preferences) return {};
  v1beta1::PreferredAllocationRequest request;
  v1beta1::ContainerPreferredAllocationRequest& container = *request.add_container_requests();
  container.set_allocation_size(static_cast<int>(count));
  {
    const Lock lock(mutex);
    for (const std::string& id : ledger.Free(resource)) container.add_available_deviceids(id);
  }
  if (std::cmp_less_equal(container.available_deviceids_size(), count)) return {};
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse answer;
  const grpc::Status status = endpoint->stub->GetPreferredAllocation(&context, request, &answer);
  if (!status.ok() || answer.container_responses_size() != 1) return {};
  const auto& ids = answer.container_responses(0).deviceids();
  return {ids.begin(), ids.end()};
}

Result<Admission> KubeletDouble::Impl::Allocate(const std::string& resource, const Ids& ids) {
  if (faults.before_allocate) faults.before_allocate();
  const auto endpoint = Current(resource);
  if (endpoint == nullptr) {
    return Status(Code::kExhausted, "can't allocate: the endpoint of " + resource + " has stopped");
  }
  v1beta1::AllocateRequest request;
  v1beta1::ContainerAllocateRequest& container = *request.add_container_requests();
  for (const std::string& id : ids) container.add_devices_ids(id);
  grpc::ClientContext context;
  v1beta1::AllocateResponse answer;
  const grpc::Status status = endpoint->stub->Allocate(&context, request, &answer);
  if (!status.ok() || answer.container_responses_size() != 1) {
    return Status(Code::kExhausted,
                  fmt::format("Allocate failed due to rpc error: code = {} desc "
                              "= {}, which is unexpected",
                              static_cast<int>(status.error_code()), status.error_message()));
  }
  const v1beta1::ContainerAllocateResponse& response = answer.container_responses(0);
  Admission admission{ids, {response.envs().begin(), response.envs().end()}, {}, {}};
  for (const auto& device : response.cdi_devices()) admission.cdi_devices.insert(device.name());
  for (const auto& mount : response.mounts()) {
    admission.mounts[mount.container_path()] = mount.host_path();
  }
  return admission;
}

KubeletDouble::KubeletDouble(KubeletOptions options, KubeletFaults faults)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  impl_->faults = std::move(faults);
  impl_->Start();
}

KubeletDouble::~KubeletDouble() { impl_->Stop(); }

void KubeletDouble::Start() { impl_->Start(); }

void KubeletDouble::Stop() { impl_->Stop(); }

Result<Admission> KubeletDouble::Admit(const PodName& pod,
                                       const std::map<std::string, int64_t>& requests) {
  Admission all;
  for (const auto& [resource, count] : requests) {
    const Ids preferred = impl_->Preferred(resource, count);
    Lock lock(impl_->mutex);
    const Result<Ids> reserved = impl_->ledger.Reserve(resource, count, preferred);
    lock.unlock();
    // Like the kubelet: asks the plugin without the lock, and lists the pod only afterwards.
    Result<Admission> allocated =
        reserved.ok() ? impl_->Allocate(resource, *reserved) : Result<Admission>(reserved.status());
    lock.lock();
    if (!allocated.ok()) {
      if (reserved.ok()) impl_->ledger.Release(*reserved);
      impl_->ledger.Remove(pod.ns, pod.name);
      impl_->Changed();
      return allocated.status().Within("UnexpectedAdmissionError");
    }
    impl_->ledger.Record({pod.ns, pod.name, pod.container, resource, *reserved});
    impl_->Changed();
    all.ids.insert(reserved->begin(), reserved->end());
    all.envs.merge(allocated->envs);
    all.cdi_devices.merge(allocated->cdi_devices);
    all.mounts.merge(allocated->mounts);
  }
  return all;
}

void KubeletDouble::Remove(const std::string& ns, const std::string& name) {
  const Lock lock(impl_->mutex);
  impl_->ledger.Remove(ns, name);
  impl_->Changed();
}

std::map<std::string, ResourceCount> KubeletDouble::Resources() const {
  const Lock lock(impl_->mutex);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [resource, endpoint] : impl_->endpoints) {
    const bool expired = endpoint->ended && now - endpoint->ended_at > impl_->options.grace;
    if (expired) impl_->ledger.Forget(resource);
  }
  return impl_->ledger.Counts();
}

std::map<std::string, Ids> KubeletDouble::HealthyDevices() const {
  const Lock lock(impl_->mutex);
  return impl_->ledger.Healthy();
}

int KubeletDouble::registrations() const {
  const Lock lock(impl_->mutex);
  return impl_->registrations;
}

bool KubeletDouble::WaitFor(Duration timeout, const std::function<bool()>& done) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    // Called without the lock, because `done` locks it; a change in between is seen by the next
    // check.
    if (done()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    Lock lock(impl_->mutex);
    const auto look = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    impl_->changed.wait_until(lock, std::min(look, deadline));
  }
}

}  // namespace nos::doubles
