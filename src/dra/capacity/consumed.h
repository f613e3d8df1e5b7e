// How much capacity of a device a request consumes: the request, or the default, rounded up as the
// device's request policy says. Devices that several claims share have less left with each of them.
#pragma once

#include <optional>

#include "dra/objects.h"

namespace nos::dra {

struct Consumed {
  enum class Kind {
    kOk,
    kNo,                // the device lacks the capacity, or its policy forbids the amount
    kNotRepresentable,  // the amount passes 64 bits: the claim is at fault
    kNegative           // the amount is negative: the claim or the slice is at fault
  };
  Kind kind = Kind::kOk;
  Amounts amounts;           // of all capacities of the device
  Name faulty;               // the capacity at fault
  bool fits_unused = false;  // the amounts fit into the device if nothing uses it
};

// `fractional`: ranges count in thousandths if they can.
Consumed ConsumedBy(const std::optional<Amounts>& request, const Capacities& capacities,
                    bool fractional);

// True if `amounts` and those used already fit into the capacities. All are of one device.
bool Fits(const Amounts& amounts, const Amounts& used, const Capacities& capacities);

// Adds to the entries of `total`, or subtracts.
void AddAmounts(Amounts& total, const Amounts& amounts, bool add);

}  // namespace nos::dra
