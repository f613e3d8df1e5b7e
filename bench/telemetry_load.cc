// A fleet that reports into the embedded store as fast as possible, in simulated time: the cost of
// a sample, its size on disk, and the latency of the dashboard's queries meanwhile.
// Envelopes are prepared before the measurement and take the complete path, from gzip on; only the
// network is missing.
//
//   nos-telemetry-load FILE [NODES] [GPUS] [SLICES] [MINUTES] [REPORTERS]
//
// FILE must not exist. Default: 1000 nodes of 8 GPUs of 7 slices, 30 minutes, 8 reporters at once.
// SLICES per GPU; one report per node every 10 s.
//
//   nos-telemetry-load --days FILE DAYS [SUBJECTS]
//
// Fills a store with this many days of rollups, and measures queries on them.
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/random.h"
#include "codec/gzip.h"
#include "telemetry/testing/reports.h"
#include "telemetryserver/api.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kEvery = 10'000;

double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double MemoryMiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int64_t SamplesOf(const telemetry::FleetShape& shape) {
  return int64_t{shape.nodes} * shape.gpus * (9 + 3 * shape.slices);
}

// Latency of an answer, in milliseconds. On a busy machine CPU time is more meaningful.
struct Took {
  double wall = 0, cpu = 0;
};

double Quantile(const std::vector<Took>& took, double Took::* field, double q) {
  std::vector<double> values;
  for (const Took& each : took) values.push_back(each.*field);
  std::ranges::sort(values);
  return values.empty() ? 0
                        : values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Server {
  telemetry::SetClock clock;
  Metrics metrics;
  StreamHub hub;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Ingest> ingest;
  std::unique_ptr<Api> api;
  std::unique_ptr<net::BodyStream> stream;

  Status Open(const std::string& file) {
    RecorderOptions options;
    options.store.path = file;
    NOS_ASSIGN(recorder, Recorder::Open(options, gpu::Catalogue::Builtin(), clock, metrics,
                                        [this] { hub.Changed(); }));
    ingest = std::make_unique<Ingest>(*recorder, nullptr, metrics);
    const auto everybody = [](const net::HttpRequest&) -> Result<Reader> {
      return Reader{"bench", true, {}};
    };
    api = std::make_unique<Api>(Api::Parts{*recorder, *ingest, hub, gpu::Catalogue::Builtin(),
                                           metrics, everybody, false, "bench"});
    return Status::Ok();
  }
  Took Ask(const std::string& target) const {
    const SteadyClock steady;
    const Time begin = steady.Now();
    const double cpu = CpuSeconds(RUSAGE_THREAD);
    const net::HttpResponse response = api->Answer({"GET", target, {}, ""});
    if (response.code != 200) fmt::print(stderr, "{}: {}\n", target, response.body);
    return {ToSeconds(steady.Now() - begin) * 1000, (CpuSeconds(RUSAGE_THREAD) - cpu) * 1000};
  }
  // Reads the changes that an open dashboard receives.
  Took Follow() {
    const SteadyClock steady;
    const Time begin = steady.Now();
    const double cpu = CpuSeconds(RUSAGE_THREAD);
    if (stream == nullptr) stream = api->Answer({"GET", "/api/v1/stream", {}, ""}).stream;
    std::string changes;
    if (stream != nullptr) stream->Read(changes);
    return {ToSeconds(steady.Now() - begin) * 1000, (CpuSeconds(RUSAGE_THREAD) - cpu) * 1000};
  }
};

void PrintQuery(const std::string& name, const std::vector<Took>& took) {
  fmt::print("  {:24} {:5} times  p50 {:7.1f} ms  p95 {:7.1f} ms  CPU p50 {:6.1f} p95 {:6.1f} ms\n",
             name, took.size(), Quantile(took, &Took::wall, 0.5), Quantile(took, &Took::wall, 0.95),
             Quantile(took, &Took::cpu, 0.5), Quantile(took, &Took::cpu, 0.95));
}

void PrintQueries(const std::map<std::string, std::vector<Took>>& times) {
  std::vector<Took> all;
  for (const auto& [name, took] : times) {
    PrintQuery(name, took);
    all.insert(all.end(), took.begin(), took.end());
  }
  PrintQuery("all", all);
}

// A tenth of the reports, sent by several reporters at once.
void Round(Server& server, const std::vector<std::string>& bodies, size_t second, int reporters,
           std::atomic<int64_t>& failed) {
  std::atomic<size_t> next{bodies.size() * second / 10};
  const size_t end = bodies.size() * (second + 1) / 10;
  std::vector<std::thread> threads;
  for (int i = 0; i < reporters; ++i) {
    threads.emplace_back([&] {
      for (size_t n = next++; n < end; n = next++) {
        const net::HttpResponse response = server.api->Answer(
            {"POST", "/api/v1/ingest", {{"content-encoding", "gzip"}}, bodies[n]});
        if (response.code != 200) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int Load(const std::string& file, const telemetry::FleetShape& shape, int minutes, int reporters) {
  Server server;
  if (const Status opened = server.Open(file); !opened.ok()) {
    fmt::print(stderr, "{}\n", opened.ToString());
    return 1;
  }
  const SteadyClock steady;
  std::atomic<int64_t> failed{0};
  double wall = 0, cpu = 0, longest = 0;
  size_t bytes = 0;
  std::map<std::string, std::vector<Took>> queries;
  const int rounds = minutes * 6;
  for (int round = 0; round < rounds; ++round) {
    const telemetry::Millis at = telemetry::kReportStart + round * kEvery;
    std::vector<std::string> bodies;
    for (int n = 0; n < shape.nodes; ++n) {
      bodies.push_back(Gzip(WriteJson(telemetry::NodeReport(shape, n, at + n, round + 1)), 6));
      bytes += bodies.back().size();
    }
    server.clock.Set(at + kEvery);
    const double cpu_before = CpuSeconds(RUSAGE_SELF);
    const Time begin = steady.Now();
    // One second's reports at a time, while a dashboard is open.
    for (size_t second = 0; second < 10; ++second) {
      Round(server, bodies, second, reporters, failed);
      queries["stream, a second's changes"].push_back(server.Follow());
    }
    if (round + 1 == rounds) (void)server.recorder->Settle();
    const double took = ToSeconds(steady.Now() - begin);
    wall += took;
    longest = std::max(longest, took);
    cpu += CpuSeconds(RUSAGE_SELF) - cpu_before;
    const std::string instance = telemetry::InstanceName(round % shape.nodes, 0, 0);
    for (const auto& [name, target] : std::map<std::string, std::string>{
             {"overview", "/api/v1/overview"},
             {"gpus (whole fleet)", "/api/v1/gpus"},
             {"gpus?namespace", "/api/v1/gpus?namespace=team-1"},
             {"workloads", "/api/v1/workloads"},
             {"series, an hour", "/api/v1/series?metric=utilization&subject=instance/" + instance},
             {"series, cluster", "/api/v1/series?metric=allocated&subject=cluster"},
             {"decisions", "/api/v1/decisions"}}) {
      queries[name].push_back(server.Ask(target));
    }
  }
  const auto samples = static_cast<double>(SamplesOf(shape) * rounds);
  fmt::print("{} nodes, {} GPUs, {} slices; {} min of reports each 10 s; {} at once\n", shape.nodes,
             shape.nodes * shape.gpus, shape.nodes * shape.gpus * shape.slices, minutes, reporters);
  fmt::print("samples: {:.0f}, refused envelopes: {}\n", samples, failed.load());
  fmt::print("sustained: {:.0f} samples/s ({:.0f} are needed), longest round of 10 s: {:.2f} s\n",
             samples / wall, static_cast<double>(SamplesOf(shape)) / 10, longest);
  fmt::print(
      "CPU: {:.2f} us a sample, {:.2f} ms an envelope; {:.0f} % of a core at the real pace\n",
      cpu / samples * 1e6, cpu / (static_cast<double>(shape.nodes) * rounds) * 1e3,
      cpu / (static_cast<double>(minutes) * 60) * 100);
  fmt::print("over the network: {:.2f} B a sample\n", static_cast<double>(bytes) / samples);
  fmt::print("memory at most: {:.0f} MiB (what the reports are made in included)\n", MemoryMiB());
  PrintQueries(queries);
  server.stream.reset();
  server.api.reset();
  server.ingest.reset();
  server.recorder.reset();
  auto db = Sqlite::Open(file, Sqlite::Mode::kRead);
  if (!db.ok()) return 1;
  const auto chunks = db->Number("SELECT sum(length(body) + 8) FROM chunks");
  const auto used = db->Number(
      "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
      "pragma_freelist_count, pragma_page_size");
  if (!chunks.ok() || !used.ok()) return 1;
  fmt::print("on disk: {:.2f} B a sample in chunks, {:.2f} B with all the rest\n",
             static_cast<double>(*chunks) / samples, static_cast<double>(*used) / samples);
  return failed == 0 ? 0 : 1;
}

// Samples each 5 minutes suffice for rollups of 5 minutes and an hour.
int Days(const std::string& file, int days, int subjects) {
  constexpr telemetry::Millis kStep = 5 * kMinute;
  {
    auto store = Store::Open({.path = file});
    if (!store.ok()) return 1;
    const auto name = [&]() -> Status { return (*store)->ClusterId("prod").status(); };
    if (!(*store)->Transaction(name).ok()) return 1;
    Random random(1);
    Heads heads;
    for (telemetry::Millis from = telemetry::kReportStart - days * kDay;
         from < telemetry::kReportStart; from += 6 * kHour) {
      for (telemetry::Millis at = from; at < from + 6 * kHour; at += kStep) {
        for (int i = 0; i < subjects; ++i) {
          const double load = static_cast<double>(random.Below(101)) / 100;
          (void)heads.Add(
              at, {fmt::format("gpu/{}", i),
                   {{"utilization", load}, {"power", 60 + 300 * load}, {"memory_used", 4000}},
                   nullptr,
                   nullptr});
        }
        (void)heads.Add(
            at, {"cluster", {{"allocated", random.Uniform()}, {"used", 0.5}}, nullptr, nullptr});
      }
      const auto flush = [&] { return (*store)->Flush(1, heads); };
      if (!(*store)->Transaction(flush).ok()) return 1;
      (*store)->TakeNumbers(1, heads);
      heads.Clear();
      const telemetry::Millis now = from + 6 * kHour;
      for (auto more = (*store)->RollUp(now); more.ok() && *more;) more = (*store)->RollUp(now);
      for (auto more = (*store)->Expire(now, {}); more.ok() && *more;) {
        more = (*store)->Expire(now, {});
      }
    }
    fmt::print("{} days of {} subjects: {} MiB\n", days, subjects,
               (*store)->UsedBytes().value_or(0) >> 20);
  }
  Server server;
  if (const Status opened = server.Open(file); !opened.ok()) return 1;
  std::map<std::string, std::vector<Took>> queries;
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    for (const int span : {1, 7, 30}) {
      const std::string window =
          fmt::format("&from={}&to={}&points=500", telemetry::kReportStart - span * kDay,
                      telemetry::kReportStart);
      const uint64_t gpu = random.Below(static_cast<uint64_t>(subjects));
      queries[fmt::format("cluster, {} days", span)].push_back(
          server.Ask("/api/v1/series?metric=allocated&subject=cluster" + window));
      queries[fmt::format("a GPU, {} days", span)].push_back(
          server.Ask(fmt::format("/api/v1/series?metric=power&subject=gpu/{}{}", gpu, window)));
    }
  }
  PrintQueries(queries);
  return 0;
}

int Main(int argc, char** argv) {
  const auto number = [&](int place, int fallback) {
    return argc > place ? std::max(1, std::atoi(argv[place])) : fallback;
  };
  const bool days = argc > 1 && std::string(argv[1]) == "--days";
  const std::string file = argc > (days ? 2 : 1) ? argv[days ? 2 : 1] : "";
  if (file.empty() || std::filesystem::exists(file)) {
    fmt::print(stderr, "name a file that is not there yet, for the store\n");
    return 2;
  }
  if (days) return Days(file, number(3, 30), number(4, 1000));
  return Load(file, {number(2, 1000), number(3, 8), number(4, 7)}, number(5, 30), number(6, 8));
}

}  // namespace
}  // namespace nos::telemetryserver

int main(int argc, char** argv) { return nos::telemetryserver::Main(argc, argv); }
