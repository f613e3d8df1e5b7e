// Sample blocks: any input is refused or is a block within limits that can be written again, and a
// column decoded alone equals the column decoded with the others.
#include <bit>
#include <cmath>

#include "codec/samples.h"
#include "target.h"

using namespace nos;  // NOLINT

namespace {

bool Same(const std::vector<double>& a, const std::vector<double>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = std::bit_cast<uint64_t>(a[i]) == std::bit_cast<uint64_t>(b[i]) ||
           (std::isnan(a[i]) && std::isnan(b[i]));
  }
  return same;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = FuzzText(data, size);
  const auto block = DecodeSamples(bytes);
  if (!block.ok()) {
    Require(block.status().code() == Code::kInvalid, "refused as invalid");
    return 0;
  }
  Require(block->times.size() <= kMaxBlockSamples, "samples are bounded");
  Require(block->columns.size() <= kMaxBlockColumns, "columns are bounded");
  const auto again = DecodeSamples(EncodeSamples(*block));
  Require(again.ok() && again->times == block->times, "it can be written again");
  for (size_t c = 0; c < block->columns.size(); ++c) {
    const auto one = DecodeSamples(bytes, c);
    Require(one.ok() && Same(one->columns.front(), block->columns[c]), "one column alone");
    Require(Same(again->columns[c], block->columns[c]), "the same again");
  }
  return 0;
}
