// Blocks of measurements: one column of times, shared by columns of values, compressed.
//
//   SampleBlock block{.times = {1000, 11000}, .columns = {{0.5, 0.52}, {40536, kNoSample}}};
//   std::string bytes = EncodeSamples(block);
//   NOS_ASSIGN(SampleBlock same, DecodeSamples(bytes));
//
// Exact: every double comes back bit for bit (NaNs come back as kNoSample). Times are coded as
// deltas of deltas; a column as a constant, as decimal fractions (integers times a power of ten) in
// Rice codes, or by the XOR of neighbours, whichever is smallest (times and XOR after Pelkonen et
// al., "Gorilla", VLDB 2015). Measured on GPU metrics: see bench/telemetry_load.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos {

inline constexpr double kNoSample = std::numeric_limits<double>::quiet_NaN();
inline constexpr size_t kMaxBlockSamples = 4096, kMaxBlockColumns = 256;

struct SampleBlock {
  std::vector<int64_t> times;                // milliseconds, in any order
  std::vector<std::vector<double>> columns;  // each as long as `times`; kNoSample: no value
};

// REQUIRES: 1 to kMaxBlockSamples times, at most kMaxBlockColumns columns.
std::string EncodeSamples(const SampleBlock& block);
// Error: kInvalid for any malformed input. Allocates no more than the largest block needs.
Result<SampleBlock> DecodeSamples(std::string_view bytes);
// Decodes only one column, into a block of its own. Errors: as before; kNotFound: no such column.
Result<SampleBlock> DecodeSamples(std::string_view bytes, size_t column);

}  // namespace nos
