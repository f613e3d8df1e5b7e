#include "dra/constraints/attribute_constraint.h"

#include <gtest/gtest.h>

namespace nos::dra {
namespace {

Attribute Text(const char* text) {
  Attribute value;
  value.type = Attribute::Type::kString;
  value.text = Name(text);
  return value;
}

Attribute List(std::initializer_list<const char*> texts) {
  Attribute value;
  value.type = Attribute::Type::kString;
  value.list = true;
  for (const char* text : texts) value.elements.push_back(Text(text));
  return value;
}

TEST(AttributeConstraintTest, SameValue) {
  const Attribute a = Text("a"), b = Text("b");
  Attribute number;
  number.type = Attribute::Type::kInt;
  AttributeConstraint same(false, false);
  EXPECT_FALSE(same.Add(nullptr));
  EXPECT_TRUE(same.Add(&a));
  EXPECT_TRUE(same.Add(&a));
  EXPECT_FALSE(same.Add(&b));
  EXPECT_FALSE(same.Add(&number));
  same.Remove();
  same.Remove();
  EXPECT_TRUE(same.Add(&b)) << "no device is left that determines the value";
}

TEST(AttributeConstraintTest, DistinctValues) {
  const Attribute a = Text("a"), b = Text("b");
  AttributeConstraint distinct(true, false);
  EXPECT_TRUE(distinct.Add(&a));
  EXPECT_FALSE(distinct.Add(&a));
  EXPECT_TRUE(distinct.Add(&b));
  distinct.Remove();
  EXPECT_FALSE(distinct.Add(&a));
  EXPECT_TRUE(distinct.Add(&b));
}

TEST(AttributeConstraintTest, ListsAreSets) {
  const Attribute ab = List({"a", "b"}), bc = List({"b", "c"}), ac = List({"a", "c"});
  const Attribute b = Text("b"), d = Text("d");
  AttributeConstraint same(false, true);
  EXPECT_TRUE(same.Add(&ab));
  EXPECT_TRUE(same.Add(&bc));
  EXPECT_FALSE(same.Add(&ac)) << "all three have no common element";
  EXPECT_TRUE(same.Add(&b));
  same.Remove();
  same.Remove();
  EXPECT_TRUE(same.Add(&ac)) << "the set before bc is restored";
  AttributeConstraint distinct(true, true);
  EXPECT_TRUE(distinct.Add(&ab));
  EXPECT_FALSE(distinct.Add(&b));
  EXPECT_TRUE(distinct.Add(&d));
  AttributeConstraint off(false, false);
  EXPECT_TRUE(off.Add(&ab)) << "the first device is accepted";
  EXPECT_FALSE(off.Add(&ab)) << "lists are switched off";
}

TEST(FindAttributeTest, NamesWithAndWithoutDomain) {
  Device device;
  device.attributes = Interned<Attributes, AttributesHash>(
      Attributes{{Name("model"), Text("a")}, {Name("other.com/model"), Text("b")}});
  const auto find = [&](const char* name) {
    const Attribute* found =
        FindAttribute(device, Name(name), ShortName(name, Name("gpu.example.com")));
    return found == nullptr ? "" : found->text.str();
  };
  EXPECT_EQ(find("gpu.example.com/model"), "a");
  EXPECT_EQ(find("other.com/model"), "b");
  EXPECT_EQ(find("third.com/model"), "");
  EXPECT_EQ(find("model"), "a") << "as published";
}

}  // namespace
}  // namespace nos::dra
