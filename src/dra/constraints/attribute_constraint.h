// One constraint of a claim on an attribute of its devices: all have the same value, or each has
// another. Lists count as sets: the same value means a common element, another one no common
// element.
#pragma once

#include <string>
#include <vector>

#include "dra/objects.h"

namespace nos::dra {

class AttributeConstraint {
 public:
  // `lists`: list attributes are switched on.
  AttributeConstraint(bool distinct, bool lists) : distinct_(distinct), lists_(lists) {}

  // Adds a device with this value, which must live as long as the device is part of the set; null:
  // the device lacks the attribute. False, and not added: the constraint forbids it.
  bool Add(const Attribute* value);
  // Undoes the last addition.
  void Remove();
  // Appends text that is equal for states that allow the same further devices.
  void AppendState(std::string& text) const;

 private:
  bool AddSame(const Attribute& value);
  bool AddDistinct(const Attribute& value);

  bool distinct_, lists_;
  std::vector<const Attribute*> values_;
  // With lists and the same value: the elements common to the first n devices.
  std::vector<std::vector<Attribute>> common_;
};

// Appends text that is equal for equal values.
void AppendValue(const Attribute& value, std::string& text);

// The published attribute of a device by its name with domain; null if absent.
const Attribute* FindAttribute(const Device& device, const Name& full_name, const Name& short_name);
// The part of a full name behind the domain if the domain is the driver's; else empty.
Name ShortName(const std::string& full_name, const Name& driver);

}  // namespace nos::dra
