// Quantity: texts are exact, and whole and milli values are never below the quantity.
#include "base/quantity.h"

#include "target.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<Quantity> quantity = Quantity::Parse(FuzzText(data, size));
  if (!quantity.ok()) return 0;
  for (const std::string& text : {quantity->ToString(), quantity->ToBinaryString()}) {
    const Result<Quantity> again = Quantity::Parse(text);
    Require(again.ok() && *again == *quantity, "printed quantities are read back exactly");
  }
  const auto inside = [](int64_t value) { return value > INT64_MIN + 1 && value < INT64_MAX; };
  if (inside(quantity->Value())) {
    Require(Quantity::FromValue(quantity->Value()) >= *quantity, "Value rounds up");
  }
  if (inside(quantity->MilliValue())) {
    Require(Quantity::FromMilli(quantity->MilliValue()) >= *quantity, "MilliValue rounds up");
  }
  return 0;
}
