// The part of a device that an expression reads.
#pragma once

#include <optional>
#include <vector>

#include "cel/program.h"
#include "dra/expressions/recent.h"
#include "dra/objects.h"

namespace nos::dra {

// Equal for devices to which an expression gives the same answer. Holds what it identifies.
struct Read {
  uint64_t program = 0;  // its number
  Name driver;
  bool allow_multiple = false;
  // In the order of the expression's paths; an empty entry: the device has none.
  std::vector<Attributes::Entry> attributes;
  std::vector<std::optional<Quantity>> capacity;
  friend bool operator==(const Read&, const Read&) = default;
};

struct ReadHash {
  size_t operator()(const Read& read) const;
};

// Says whether the attributes of devices are such that no expression fails because of them.
class Validity {
 public:
  bool Of(const Attributes& attributes);

 private:
  bool IsValid(const Attribute& value);
  Recent<Name, bool, std::hash<Name>> versions_{1024, 1024};
};

// Extracts what one expression reads.
class Reading {
 public:
  Reading(uint64_t program, const cel::Reads& reads) : program_(program), reads_(reads) {}

  // The expression may read anything, so the whole content of a device decides.
  bool everything() const { return reads_.all; }
  // REQUIRES: !everything().
  Read Of(const ResourceSlice& slice, const Device& device);

 private:
  // The names under which a slice of the driver has what a path reads.
  struct Names {
    bool capacity = false;
    Name full;
    Name identifier;  // only of the driver's domain
  };
  void ResolveFor(const Name& driver);

  uint64_t program_;
  cel::Reads reads_;
  Name driver_;  // of names_
  std::vector<Names> names_;
};

}  // namespace nos::dra
