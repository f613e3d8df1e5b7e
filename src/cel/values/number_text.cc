#include "cel/values/number_text.h"

#include <charconv>
#include <cmath>

namespace nos::cel {
namespace {

std::string Special(double value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "+Inf" : "-Inf";
}

std::string Print(double value, std::chars_format format) {
  char buffer[512];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, format);
  return {buffer, end};
}

}  // namespace

std::string FormatGeneral(double value) {
  if (!std::isfinite(value)) return Special(value);
  std::string scientific = Print(value, std::chars_format::scientific);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (value != 0 && (exponent < -4 || exponent >= 6)) return scientific;
  return Print(value, std::chars_format::fixed);
}

std::string FormatPlain(double value) {
  if (!std::isfinite(value)) return Special(value);
  return Print(value, std::chars_format::fixed);
}

}  // namespace nos::cel
