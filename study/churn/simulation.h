// Churn simulation: measures how many requests for GPU instances a placement policy can serve.
//
// Requests arrive as a Poisson process. Each is for one profile drawn from the mix, holds it for an
// exponentially distributed time and ends. A request that cannot be placed at once is lost. The
// load is the average number of requested slots divided by the number of all slots. The first sixth
// of the arrivals warms up the GPUs and is not counted. Equal seeds give equal arrivals and service
// times for all policies, so policies are compared on the same stream.
//
//   ChurnOptions options;
//   options.model = gpu::Catalogue::Builtin().FindByName("A100-40GB");
//   NOS_ASSIGN(ChurnReport report, RunChurn(options));
//   std::cout << ToText(report);
//
// Pure, except that it may read a mix file: the same options give the same report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"
#include "gpu/catalogue.h"

namespace nos::study {

enum class ChurnPolicy {
  kNos,             // least loss of potential over all GPUs (study/placement/fleet.h)
  kFirstFit,        // first GPU on which the profile fits, lowest start
  kBestFit,         // GPU with the fewest free slots on which it fits, lowest start
  kLargestFreeRun,  // first GPU on which it fits; the start that leaves the longest run of free
                    // slots, then the most possible placements (the rule of HAMi's MIG packing)
  kPlacementsLost,  // over all GPUs and starts, the fewest placements lost (the rule of MFI)
  kRepack,  // unattainable upper limit: accepts whenever a repacking of all instances exists
};
// "nos", "first-fit", "best-fit", "largest-free-run", "placements-lost", "repack".
std::string_view PolicyName(ChurnPolicy policy);
// Error: kInvalid listing the names.
Result<ChurnPolicy> ParsePolicy(std::string_view name);

struct ChurnOptions {
  const gpu::Model* model = nullptr;  // required; must outlive the run
  int gpus = 100;                     // 1..100,000
  std::string mix = "uniform";        // as in LoadMix
  double load = 0.95;                 // above 0, at most 100
  int64_t arrivals = 60'000;          // 6..100,000,000
  uint64_t seed = 1;
  ChurnPolicy policy = ChurnPolicy::kNos;
  int moves = 0;  // 0..2, only for kNos: instances that may move for a blocked request
  // Requests are ResourceClaims, and devices are allocated as the scheduler does (claims_host.h).
  // Only kNos and kFirstFit, without moves.
  bool claims = false;
  int node_gpus = 8;  // 1..16: GPUs of a node; only for claims
};

struct ChurnCount {
  int64_t offered = 0, accepted = 0;
  std::optional<double> Share() const;  // 0 to 1; nullopt if nothing was offered
};

struct ChurnReport {
  ChurnOptions options;
  ChurnCount requests;                // after the warm-up, like all members below
  ChurnCount compute;                 // weighted by compute slices
  std::vector<std::string> profiles;  // of the mix
  std::vector<ChurnCount> by_profile;
  int64_t moves = 0;

  double MovesPerAccepted() const;
};

// Error: kInvalid or kNotFound for invalid options, with the reason; also if kRepack has no exact
// test for the model and the mix.
Result<ChurnReport> RunChurn(const ChurnOptions& options);

// model, gpus, mix, load, arrivals, seed, policy, maxMoves; offered, accepted, acceptedShare and
// acceptedComputeShare (0 to 1, null if nothing was offered); profiles[]: the same per profile;
// moves, movesPerAccepted.
Json ToJson(const ChurnReport& report);
// A table, at most 100 columns wide.
std::string ToText(const ChurnReport& report);

}  // namespace nos::study
