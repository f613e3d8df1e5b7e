// nos agent: runs on each node with GPUs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <thread>

#include "agent/mps_grant.h"
#include "agent/nebuly_plugin.h"
#include "agent/node_agent.h"
#include "agent/nvidia_plugin.h"
#include "base/log.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/outside_events.h"
#include "cmd/daemon/process.h"
#include "cmd/daemons/agent_telemetry.h"
#include "codec/json.h"
#include "device/describe.h"
#include "device/mig_parts.h"
#include "device/mps_control.h"
#include "device/mps_gpus.h"
#include "device/nebuly_gpus.h"
#include "device/plain_gpus.h"
#include "device/shared_backend.h"
#include "gpu/modes.h"
#include "kube/metered_transport.h"
#include "kubelet/device_plugin_server.h"
#include "kubelet/pod_resources_client.h"
#include "reconcile/metrics.h"
#include "telemetry/sample_text.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kKind = "MigAgentConfig";

constexpr MetricFamily kRegistrations{MetricFamily::Kind::kCounter,
                                      "nos_agent_device_plugin_registrations_total",
                                      "Number of registrations with the kubelet since the start, "
                                      "by resource and result (ok or error)."};
constexpr MetricFamily kAllocations{
    MetricFamily::Kind::kCounter, "nos_agent_device_plugin_allocations_total",
    "Number of Allocate calls since the start, by resource and result (ok or refused)."};
constexpr MetricFamily kConnected{MetricFamily::Kind::kGauge, "nos_agent_device_plugin_connected",
                                  "1 while the kubelet watches the device list, by resource."};

struct AgentFlags {
  DaemonFlags daemon;
  bool once = false, print = false;
  std::string output = "table", library, node;
};

struct Config {
  DaemonConfig daemon;
  agent::AgentConfig agent;
  std::string library, geometries_file, plugin = "builtin", handover = "environment";
  kubelet::DevicePluginOptions builtin;
  agent::NvidiaPluginOptions nvidia;
  kubelet::PodResourcesOptions pod_resources;
  AgentTelemetryConfig telemetry;
  bool mps = false, mps_in_proportion = false;
  int64_t time_slices = 4;
  std::string mig_parts;
  int64_t mps_overhead = gpu::kShareOverheadMib, mps_clients = gpu::kMaxShares;
  device::MpsControlOptions mps_control;
  std::string mps_shm, mps_plugin = "builtin";
  agent::NebulyPluginOptions nebuly;
  std::string reset = "never";
  device::GpuResetOptions gpu_reset;

  // True if Nebuly's device plugin offers the shares.
  bool Nebuly() const { return mps && mps_plugin == "nebuly"; }
};

void DescribeNebuly(ConfigFields& f, agent::NebulyPluginOptions& c) {
  f.Group("nebuly", [&] {
    f.Text("configMapName", c.config_map.name, "ConfigMap of Nebuly's plugin.");
    f.Text("configMapNamespace", c.config_map.ns,
           "Namespace of the ConfigMap and of the plugin's pods.");
    f.Text("selector", c.selector, "Label selector of the plugin's pods.");
    f.Text(
        "podsFolder", c.pods_folder,
        "The kubelet's folder of pod volumes. The node's label changes once the plugin's pod has "
        "its new file, or two minutes after the ConfigMap if this folder is not readable.");
  });
}

void DescribeAgent(ConfigFields& f, Config& c) {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;
  f.Seconds(
      "reportConfigIntervalSeconds", c.agent.poll, milliseconds(100), hours(1),
      "Interval of reading GPUs and kubelet, for changes that neither of them announces. Other "
      "changes are reported at once.");
  f.Text("knownMigGeometriesFile", c.geometries_file,
         "File with additional or overridden GPU models (docs/catalogue.md); the same as the "
         "partitioner's.");
  f.Text("nvmlLibrary", c.library,
         "Path of the NVML library. Empty: $NOS_NVML_LIBRARY or libnvidia-ml.so.1.");
  f.Group("devicePlugin", [&] {
    f.Word(
        "mode", c.plugin, {"builtin", "nvidia"},
        "Device plugin that offers MIG devices to the kubelet: builtin (nos), or nvidia, which is "
        "restarted when devices change.");
    f.Text("folder", c.builtin.folder, "The kubelet's folder of device plugin sockets (builtin).");
    f.Word("handover", c.handover, {"environment", "cdi"},
           "How devices are passed to containers (builtin): NVIDIA_VISIBLE_DEVICES, or CDI names.");
    f.Text("cdiKind", c.builtin.cdi_kind, "Vendor and class of CDI device names.");
    f.Text("selector", c.nvidia.selector,
           "Label selector of the pods of NVIDIA's plugin (nvidia).");
    f.Text("namespace", c.nvidia.ns,
           "Namespace of the pods of NVIDIA's plugin (nvidia). Empty: any.");
  });
  f.Text("podResourcesSocket", c.pod_resources.socket, "Socket of the kubelet's PodResources API.");
  f.Seconds(
      "settleSeconds", c.agent.settle, milliseconds(0), seconds(5),
      "Before an instance is destroyed it is subtracted from the node's allocatable. Time that "
      "schedulers then get to see the change.");
  f.Seconds("drainTimeoutSeconds", c.agent.drain_timeout, seconds(1), minutes(10),
            "Used in place of settleSeconds if the agent is not allowed to write nodes/status.");
  f.Group("mps", [&] {
    f.Flag("enabled", c.mps,
           "Share the GPUs of a node with label nos.nebuly.com/gpu-partitioning=mps by memory "
           "(nvidia.com/gpu-<N>gb). With plugin builtin, requires devicePlugin.mode builtin.");
    f.Word(
        "plugin", c.mps_plugin, {"builtin", "nebuly"},
        "Device plugin that offers shares and runs the MPS daemon: builtin (nos), or nebuly, which "
        "is configured by a ConfigMap. With nebuly only overheadMiB and clientsPerGpu have "
        "effect.");
    DescribeNebuly(f, c.nebuly);
    f.Text("program", c.mps_control.program,
           "NVIDIA's MPS control daemon: a path, or a name in $PATH.");
    f.Text("folder", c.mps_control.folder,
           "Folder of the daemons' pipes; containers get their GPU's folder at the same path.");
    f.Text("logFolder", c.mps_control.log_folder, "Folder of the daemons' logs.");
    f.Text("shmFolder", c.mps_shm,
           "Folder on the host that daemons and containers mount as /dev/shm. Empty: pods must set "
           "hostIPC.");
    f.Flag("multiUser", c.mps_control.multi_user,
           "If true, all users share one MPS server and its faults. If false, pods of other users "
           "wait.");
    f.Flag(
        "computeByMemory", c.mps_in_proportion,
        "If true, a share may use multiprocessors in proportion to its memory, else all of them.");
    f.Number("overheadMiB", c.mps_overhead, 0, 16384,
             "Memory per GPU in MiB reserved for the MPS server and its clients' contexts.");
    f.Number("clientsPerGpu", c.mps_clients, 1, gpu::kMaxClients,
             "Maximum number of shares per GPU: the client limit of its MPS server.");
  });
  f.Group("hybrid", [&] {
    f.Number("timeSlices", c.time_slices, 0, gpu::kMaxTimeSlices,
             "Number of pods that may share a GPU by time slices on a node with label "
             "nos.nebuly.com/gpu-partitioning=hybrid (nvidia.com/gpu.shared); 0, 1: none. Requires "
             "devicePlugin.mode builtin.");
    f.Word(
        "reset", c.reset, {"never", "gpu", "node"},
        "For GPUs of such a node that need a reset to change MIG mode (A100, A30). never: they "
        "keep their mode. gpu: the agent resets a GPU that no process uses. node: the mode changes "
        "at a reboot, which the node condition nos.nebuly.com/RebootRequired requests.");
    f.Text("resetProgram", c.gpu_reset.program,
           "nvidia-smi, used to reset GPUs: a path, or a name in $PATH.");
    f.Text("migParts", c.mig_parts,
           "Equal MPS shares into which MIG instances of such a node may be divided, such as "
           "3g.40gb.mps4,2g.20gb.mps2 (nvidia.com/mig-3g.40gb.mps4). A GPU uses the entries of its "
           "profiles. Empty: none. Requires mps.enabled.");
  });
  f.Group("telemetry", [&] { DescribeAgentTelemetry(f, c.telemetry); });
  DescribeDaemon(f, c.daemon);
  f.Retired("webhook", "this daemon serves no webhook");
  f.Group("leaderElection", [&] {
    f.Retired("leaderElect", "every node has its own agent");
    f.Retired("resourceName", "every node has its own agent");
  });
}

void MeasurePlugin(const kubelet::DevicePluginServer& plugin, Metrics& metrics) {
  for (const auto& [resource, counts] : plugin.Counts()) {
    const auto count = [&](const MetricFamily& family, const char* result, uint64_t total) {
      metrics.CountTo(family, {{"resource", resource}, {"result", result}},
                      static_cast<double>(total));
    };
    count(kRegistrations, "ok", counts.registrations);
    count(kRegistrations, "error", counts.failed_registrations);
    count(kAllocations, "ok", counts.allocations);
    count(kAllocations, "refused", counts.refusals);
    metrics.Set(kConnected, {{"resource", resource}}, counts.connected ? 1 : 0);
  }
}

auto GrantsOf(const Config& config, const device::MpsControl& daemons, device::Backend& backend) {
  agent::MpsGrantOptions options;
  options.pipe_folder = [&](const std::string& uuid) { return daemons.PipeFolder(uuid); };
  options.shm_folder = config.mps_shm;
  options.part_mib = [&](const std::string& uuid) { return daemons.LimitMib(uuid); };
  options.serves = [&](const std::string& uuid) { return daemons.Serves(uuid); };
  if (config.mps_in_proportion) {
    options.share_gib = [&](const std::string& uuid) {
      const auto infos = backend.ListGpus();
      if (!infos.ok()) return 0;
      const auto gpu = std::ranges::find(*infos, uuid, &device::GpuInfo::uuid);
      return gpu == infos->end() ? 0 : gpu->share_gib;
    };
  }
  return
      [options, shares = config.mps, in_proportion = config.mps_in_proportion](
          const kubelet::Allocation& allocation) -> Result<std::optional<kubelet::ContainerGrant>> {
        if (auto grant = agent::GrantTimeSlices(allocation)) return grant;
        if (!shares) return std::optional<kubelet::ContainerGrant>();
        NOS_ASSIGN(auto part, agent::GrantMigParts(allocation, options, in_proportion));
        if (part) return part;
        return agent::GrantMpsShares(allocation, options);
      };
}

std::unique_ptr<kubelet::DevicePluginServer> MakeBuiltin(Config& config,
                                                         const device::MpsControl& daemons,
                                                         device::Backend& backend,
                                                         const std::function<void()>& look) {
  config.builtin.handover =
      config.handover == "cdi" ? kubelet::Handover::kCdi : kubelet::Handover::kEnvironment;
  config.builtin.on_allocate = [look](const kubelet::Allocation&) { look(); };
  config.builtin.grant = GrantsOf(config, daemons, backend);
  if (config.mps && !config.Nebuly()) config.builtin.prefer = agent::PreferOneGpu;
  return std::make_unique<kubelet::DevicePluginServer>(config.builtin);
}

void StartOrWarn(device::NvmlEvents& watcher) {
  if (const Status started = watcher.Start(); !started.ok()) {
    Log(LogLevel::kWarn, "GPU health monitoring is disabled", {{"error", started.message()}});
  }
}

void Leave(agent::Agent& agent, const reconcile::Runner& runner, kube::Transport& transport,
           Duration settle) {
  kube::Client client(transport);
  if (const Status left = agent.Leave(runner.view(), client); !left.ok()) {
    Log(LogLevel::kWarn, "failed to reset node allocatable on shutdown",
        {{"error", left.message()}});
  }
  std::this_thread::sleep_for(settle);  // time for schedulers to see the change
}

Status CheckAgent(const AgentFlags& flags, const Config& config) {
  if (flags.node.empty()) {
    return Invalid("the name of this node is not known: give --node NAME or set NODE_NAME");
  }
  if (config.mps && config.plugin != "builtin" && !config.Nebuly()) {
    return Invalid(
        "mps.enabled requires devicePlugin.mode builtin or mps.plugin nebuly: NVIDIA's plugin "
        "offers no shares");
  }
  const auto parts = gpu::ParseParts(config.mig_parts);
  if (!parts.ok()) return parts.status().Within("hybrid.migParts");
  if (!parts->empty() && !config.mps) {
    return Invalid("hybrid.migParts requires mps.enabled: parts of instances are shared by MPS");
  }
  return Status::Ok();
}

struct MpsBackends {
  std::unique_ptr<device::MpsGpus> gpus;  // null: no GPU is shared
  device::NebulyGpus* nebuly = nullptr;   // the same object if Nebuly's plugin is used
};

MpsBackends MakeMpsBackends(const Config& config, device::Backend& driver,
                            kubelet::PodResourcesClient& pod_resources) {
  const device::MpsGpusOptions options{config.mps_overhead, static_cast<int>(config.mps_clients)};
  MpsBackends made;
  if (!config.mps) return made;
  if (!config.Nebuly()) {
    made.gpus = std::make_unique<device::MpsGpus>(driver, options);
    return made;
  }
  const auto offered = [&pod_resources]() -> Result<std::vector<std::string>> {
    NOS_ASSIGN(const auto devices, pod_resources.Allocatable());
    std::vector<std::string> ids;
    ids.reserve(devices.size());
    for (const kubelet::OfferedDevice& device : devices) ids.push_back(device.device_id);
    return ids;
  };
  auto gpus = std::make_unique<device::NebulyGpus>(driver, options, offered);
  made.nebuly = gpus.get();
  made.gpus = std::move(gpus);
  return made;
}

std::unique_ptr<agent::NvidiaPlugin> MakeNvidia(Config& config, const std::string& node,
                                                kube::Transport& transport,
                                                kubelet::PodResourcesClient& pod_resources,
                                                const Clock& clock) {
  config.nvidia.node = node;
  return std::make_unique<agent::NvidiaPlugin>(
      config.nvidia, transport, [&pod_resources] { return pod_resources.Allocatable(); }, clock);
}

// Null if nos offers the shares itself.
std::unique_ptr<agent::NebulyPlugin> MakeNebuly(Config& config, const std::string& node,
                                                kubelet::DevicePlugin& others,
                                                kube::Transport& transport,
                                                kubelet::PodResources& pod_resources,
                                                const MpsBackends& mps, device::Backend& backend,
                                                const Clock& clock) {
  if (mps.nebuly == nullptr) return nullptr;
  config.nebuly.config_map.node = node;
  return std::make_unique<agent::NebulyPlugin>(
      config.nebuly, others, transport, pod_resources, *mps.nebuly,
      [&backend] { return backend.ListGpus(); }, clock);
}

agent::AgentExtras ExtrasOf(const Config& config, const std::vector<gpu::InstancePart>& mig_parts,
                            const device::GpuHealth& health, Metrics& metrics,
                            device::MpsControl& daemons, const agent::DeviceRules* rules) {
  const bool nebuly = config.Nebuly();
  agent::AgentExtras extras;
  extras.health = &health;
  extras.metrics = &metrics;
  extras.rules = rules;
  extras.shares_gpus = config.mps;
  if (config.mps && !nebuly) extras.daemons = &daemons;
  // Nebuly's plugin runs one MPS server for one user, and pods reach it through the host's IPC.
  extras.mps_needs = {nebuly || config.mps_shm.empty(), nebuly || !config.mps_control.multi_user};
  extras.gives_whole = config.plugin == "builtin" && !nebuly;
  extras.time_slices = static_cast<int>(config.time_slices);
  extras.resets = agent::ParseResetRule(config.reset).value_or(agent::ResetRule::kNever);
  if (!nebuly) extras.parts = mig_parts;  // Nebuly's plugin does not support parts
  return extras;
}

telemetry::Sharing SharingOf(const Config& config) {
  return {static_cast<int>(config.time_slices), config.reset != "never"};
}

Status RunAgent(const AgentFlags& flags, Config& config) {
  // 1. Read the configuration. OutsideEvents must exist before other threads (outside_events.h).
  NOS_RETURN_IF_ERROR(CheckAgent(flags, config));
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(config.geometries_file));
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.daemon.kubeconfig, flags.daemon.context));
  const SystemClock clock;
  WakeSignal bell;
  OutsideEvents events({}, [&] { bell.Ring(); });
  Metrics metrics;
  Announce("agent", metrics);

  // 2. Open the driver and stack the backends: MIG, parts, MPS, whole GPUs. The first ListGpus
  //    fails early if the driver is not usable.
  NOS_ASSIGN(const auto library,
             device::NvmlLibrary::Open(flags.library.empty() ? config.library : flags.library));
  // Set before the wake signal: the event is not visible in any cache.
  std::atomic<bool> happened{false};
  const auto look = [&] {
    happened = true;
    bell.Ring();
  };
  device::GpuHealth health;
  health.SetListener(look);
  XidLog xids;
  device::NvmlEventOptions watch;
  watch.on_xid = [&](int gpu, uint64_t xid, std::string message) {
    xids.Add({SystemClock().Now(), gpu, xid, std::move(message)});
  };
  device::NvmlEvents watcher(*library, health, watch);
  StartOrWarn(watcher);
  device::NvmlBackend nvml(*library, catalogue, &watcher, config.gpu_reset);
  config.pod_resources.mps_shares = config.plugin == "builtin" || config.Nebuly();
  kubelet::PodResourcesClient pod_resources(config.pod_resources);
  NOS_ASSIGN(const auto mig_parts, gpu::ParseParts(config.mig_parts));
  device::MigParts parts(nvml, catalogue, mig_parts);
  const MpsBackends mps = MakeMpsBackends(config, parts, pod_resources);
  device::PlainGpus plain(mps.gpus ? static_cast<device::Backend&>(*mps.gpus) : nvml);
  device::SharedBackend backend(plain);
  config.mps_control.daemon.on_change = look;
  device::MpsControl daemons(config.mps_control, health);
  NOS_RETURN_IF_ERROR(backend.ListGpus().status());
  // 3. Connect to the API server and start the device plugin, which needs the backends.
  kube::HttpTransport http(connection, HttpOptionsOf(config.daemon));
  kube::MeteredTransport metered(http, metrics);
  const auto builtin =
      config.plugin == "builtin" ? MakeBuiltin(config, daemons, backend, look) : nullptr;
  std::unique_ptr<agent::NvidiaPlugin> nvidia;
  if (!builtin) nvidia = MakeNvidia(config, flags.node, metered, pod_resources, clock);
  kubelet::DevicePlugin& own = builtin ? static_cast<kubelet::DevicePlugin&>(*builtin) : *nvidia;
  const std::unique_ptr<agent::NebulyPlugin> nebuly =
      MakeNebuly(config, flags.node, own, metered, pod_resources, mps, backend, clock);
  kubelet::DevicePlugin& plugin = nebuly ? static_cast<kubelet::DevicePlugin&>(*nebuly) : own;

  // 4. Create the reconciler. Telemetry and probes start last, because they read all of the above.
  agent::Agent agent(config.agent, flags.node, catalogue, backend, pod_resources, plugin,
                     ExtrasOf(config, mig_parts, health, metrics, daemons, nebuly.get()));
  reconcile::MeteredReconciler reconciler(agent, "agent", metrics);
  reconcile::RunnerOptions options = reconcile::ForNode(flags.node);
  options.relist_every = config.daemon.relist_every;
  options.wake = [&] { bell.Ring(); };
  reconcile::Runner runner(reconciler, metered, options);
  LoopReport report;
  NOS_ASSIGN(const auto telemetry,
             AgentTelemetry::Start(config.telemetry, {flags.node, backend, pod_resources, catalogue,
                                                      health, xids, metrics, SharingOf(config)}));
  std::vector<Check> checks{{"loop", [&] { return report.Alive(); }, true},
                            {"caches", [&] { return report.Synced(); }},
                            {"devices", [&] { return report.Works(); }}};
  NOS_ASSIGN(const auto probes,
             Probes::Serve(config.daemon.addresses, std::move(checks), metrics, [&] {
               if (builtin) MeasurePlugin(*builtin, metrics);
             }));
  // 5. Reconcile until shutdown. An event of a device or plugin is not part of any watch, so it
  //    triggers a reconciliation itself.
  RunUntil([&] { return events.StopAsked(); }, runner, bell, clock,
           [&] {
             if (happened.exchange(false)) runner.Poke(clock.Now());
             report.Turn(runner);
           });
  // 6. Withdraw the devices before the plugin stops, so that no scheduler uses them.
  Leave(agent, runner, metered, config.agent.settle);
  Log(LogLevel::kInfo, "stopping nos", {{"command", "agent"}});
  return Status::Ok();
}

// Rates are differences of two readings, so it samples twice.
Result<telemetry::NodeSample> SampleMachine(const AgentFlags& flags, const Config& config,
                                            device::Backend& backend) {
  constexpr std::chrono::milliseconds kBetween{500};  // GPM requires 100 ms (nvml.h)
  kubelet::PodResourcesClient pod_resources(config.pod_resources);
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  const auto take = [&] {
    return telemetry::TakeSample(flags.node, backend, pod_resources, catalogue, nullptr,
                                 SharingOf(config));
  };
  NOS_RETURN_IF_ERROR(take().status());
  std::this_thread::sleep_for(kBetween);
  NOS_ASSIGN(telemetry::NodeSample sample, take());
  if (config.telemetry.dcgm_url.empty()) return sample;
  NOS_ASSIGN(const auto dcgm, DcgmScraper::For(config.telemetry.dcgm_url));
  NOS_RETURN_IF_ERROR(dcgm->Fill(sample).Within("DCGM exporter (telemetry.dcgmUrl)"));
  return sample;
}

Status PrintMachine(const AgentFlags& flags, const Config& config) {
  NOS_ASSIGN(const auto library,
             device::NvmlLibrary::Open(flags.library.empty() ? config.library : flags.library));
  device::NvmlBackend backend(*library, gpu::Catalogue::Builtin());
  NOS_ASSIGN(const auto node, device::Describe(backend, gpu::Catalogue::Builtin()));
  NOS_ASSIGN(const auto sample, SampleMachine(flags, config, backend));
  if (flags.output == "json") {
    Json json = device::DescriptionJson(node);
    json.as_object()["readings"] = telemetry::SampleJson(sample);
    std::cout << WriteJsonPretty(json) << "\n";
  } else {
    std::cout << device::DescriptionText(node) << "\n" << telemetry::SampleText(sample);
  }
  return Status::Ok();
}

int Start(const AgentFlags& flags) {
  if (flags.once != flags.print) {
    return Fail("nos agent", Invalid("--once and --print must be given together"));
  }
  Config config;
  const auto describe = [&](ConfigFields& fields) { DescribeAgent(fields, config); };
  if (const Status read = ReadConfigFile(flags.daemon.config, kKind, describe); !read.ok()) {
    return Fail("nos agent", read);
  }
  if (flags.daemon.print_config) {
    std::cout << PrintConfig(kKind, describe);
    return 0;
  }
  SetLogLevelByName(config.daemon.log_level);
  const Status ran = flags.once ? PrintMachine(flags, config) : RunAgent(flags, config);
  return ran.ok() ? 0 : Fail("nos agent", ran);
}

}  // namespace

void AddAgentCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "agent", "Partition the GPUs of this node as planned (runs on each node)");
  auto flags = std::make_shared<AgentFlags>();
  AddDaemonFlags(*command, flags->daemon);
  command->add_option("--node", flags->node, "Name of this node")
      ->envname("NODE_NAME")
      ->option_text("NAME");
  command->add_flag("--once", flags->once, "Read the GPUs once and exit");
  command->add_flag("--print", flags->print, "Print the state of the GPUs and change nothing");
  command->add_option("-o,--output", flags->output, "Output format: table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
  command
      ->add_option("--nvml-library", flags->library,
                   "Default: $NOS_NVML_LIBRARY or libnvidia-ml.so.1")
      ->option_text("FILE");
  command->footer(
      "Examples:\n"
      "  nos agent --once --print -o json\n"
      "  nos agent --print-config > agent.yaml\n"
      "  NODE_NAME=gpu-1 nos agent --config agent.yaml");
  command->callback([&chosen, flags] { chosen.action = [flags] { return Start(*flags); }; });
}

}  // namespace nos::cmd
