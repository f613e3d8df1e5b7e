#include "device/simulated/load.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace nos::device {
namespace {

// A GPU of about 400 W.
constexpr double kIdleWatts = 55, kMaxWatts = 400;
constexpr double kIdleCelsius = 31, kMaxCelsius = 74;
constexpr double kIdleMhz = 345, kMaxMhz = 1410, kMemoryMhz = 1593;
constexpr double kIdleMemoryShare = 0.004;  // the driver's own memory
constexpr int kTurnsOfAWave = 90;

uint64_t SeedOf(std::string_view uuid) {
  uint64_t seed = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : uuid) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return seed;
}

double Between(double least, double most, double share) { return least + (most - least) * share; }

}  // namespace

double SimLoad(std::string_view uuid, uint64_t turn) {
  const uint64_t seed = SeedOf(uuid);
  Random own(seed);
  const double level = Between(0.3, 0.95, own.Uniform());
  const double phase = own.Uniform() + static_cast<double>(turn % kTurnsOfAWave) / kTurnsOfAWave;
  Random noise(seed + turn);
  const double load = level + 0.12 * std::sin(phase * 6.283185307) + 0.06 * (noise.Uniform() - 0.5);
  return std::clamp(load, 0.02, 1.0);
}

Readings SimUse(double load, int64_t memory_mib) {
  Readings readings;
  const auto total = static_cast<double>(memory_mib);
  const double share = load > 0 ? Between(0.2, 0.9, load) : kIdleMemoryShare;
  readings.Take(metric::kUtilization, load);
  readings.Take(metric::kMemoryUtilization, load * 0.6);
  readings.Take(metric::kMemoryUsed, std::floor(total * share));
  readings.Take(metric::kMemoryTotal, total);
  return readings;
}

void AddSimBoard(double load, Readings& readings) {
  readings.Take(metric::kPower, Between(kIdleWatts, kMaxWatts, load));
  readings.Take(metric::kPowerLimit, kMaxWatts);
  readings.Take(metric::kTemperature, std::floor(Between(kIdleCelsius, kMaxCelsius, load)));
  readings.Take(metric::kSmClock, load > 0 ? kMaxMhz : kIdleMhz);
  readings.Take(metric::kMemoryClock, kMemoryMhz);
  readings.Take(metric::kEccCorrected, 0.0);
  readings.Take(metric::kEccUncorrected, 0.0);
  readings.Take(metric::kPcieTx, std::floor(load * 900'000));
  readings.Take(metric::kPcieRx, std::floor(load * 2'400'000));
}

}  // namespace nos::device
