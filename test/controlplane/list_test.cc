// Lists of the real API server arrive in pages, complete and without duplicates, even if a page
// token expires midway.
#include <fmt/core.h>

#include <set>

#include "contract.h"

namespace nos::kube {
namespace {

std::set<std::string> NamesOf(const ObjectList& list) {
  std::set<std::string> names;
  for (const Json& item : list.items) names.emplace(FindString(item, "metadata", "name"));
  return names;
}

class ListContract : public ContractTest {
 protected:
  Result<ObjectList> List(int limit) {
    ListOptions options;
    options.label_selector = "test=contract";
    options.limit = limit;
    return client_->List(kConfigMaps, ns_, options);
  }
};

TEST_F(ListContract, FollowsPagesToTheEnd) {
  MakeRecords(1203);
  const auto list = List(100);
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(transport_->lists, 13);
  EXPECT_EQ(list->items.size(), 1203U);
  EXPECT_EQ(NamesOf(*list).size(), 1203U);
  EXPECT_FALSE(list->resource_version.empty());
}

TEST_F(ListContract, PagedListIsConsistentDespiteConcurrentWrites) {
  MakeRecords(30);
  transport_->after_list = [this] {
    if (transport_->lists != 1) return;
    ASSERT_TRUE(client_->Delete(kConfigMaps, ns_, "record-0020").ok());
    Make(kConfigMaps, RecordOf("record-9999"));
  };
  const auto list = List(10);
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(NamesOf(*list).size(), 30U);
  EXPECT_TRUE(NamesOf(*list).contains("record-0020"));
  EXPECT_FALSE(NamesOf(*list).contains("record-9999"));
}

using ListOutage = ListContract;

TEST_F(ListOutage, RestartsListAfterExpiredPageToken) {
  MakeRecords(30);
  transport_->after_list = [this] {
    if (transport_->lists != 1) return;
    ASSERT_TRUE(client_->Delete(kConfigMaps, ns_, "record-0000").ok());
    Compact();
  };
  const auto list = List(10);
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(transport_->gone, 1);
  EXPECT_EQ(list->items.size(), 29U) << "the page of before is not kept";
  EXPECT_FALSE(NamesOf(*list).contains("record-0000"));
}

}  // namespace
}  // namespace nos::kube
