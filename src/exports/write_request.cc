#include "exports/write_request.h"

#include <snappy.h>

#include <bit>

namespace nos::exports {
namespace {

// Field types of the protobuf wire format. Source: protobuf.dev/programming-guides/encoding.
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2;

constexpr char Tag(int field, int type) { return static_cast<char>(field << 3 | type); }

void AppendVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void AppendBytes(std::string& out, int field, std::string_view bytes) {
  out.push_back(Tag(field, kBytes));
  AppendVarint(out, bytes.size());
  out += bytes;
}

void AppendLabel(std::string& out, std::string_view name, std::string_view value) {
  std::string label;
  AppendBytes(label, 1, name);
  AppendBytes(label, 2, value);
  AppendBytes(out, 1, label);
}

}  // namespace

std::string EncodeLabels(std::string_view metric_name, const Labels& labels) {
  constexpr std::string_view kName = "__name__";
  std::string out;
  bool named = false;
  for (const auto& [name, value] : labels) {
    if (!named && name > kName) {
      AppendLabel(out, kName, metric_name);
      named = true;
    }
    AppendLabel(out, name, value);
  }
  if (!named) AppendLabel(out, kName, metric_name);
  return out;
}

void AppendSeries(std::string& request, std::string_view encoded_labels, double value,
                  int64_t at_millis) {
  std::string sample;
  sample.push_back(Tag(1, kFixed64));
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) sample.push_back(static_cast<char>(bits >> shift));
  sample.push_back(Tag(2, kVarint));
  AppendVarint(sample, static_cast<uint64_t>(at_millis));
  std::string series(encoded_labels);
  AppendBytes(series, 2, sample);
  AppendBytes(request, 1, series);
}

std::string Snappy(std::string_view bytes) {
  std::string out;
  snappy::Compress(bytes.data(), bytes.size(), &out);
  return out;
}

}  // namespace nos::exports
