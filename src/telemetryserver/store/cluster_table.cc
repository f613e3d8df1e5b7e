#include "telemetryserver/store/cluster_table.h"

#include <fmt/format.h>

namespace nos::telemetryserver {

Result<int64_t> ClusterTable::IdOf(const std::string& name) {
  NOS_ASSIGN(SqliteStatement * select, db_.Statement("SELECT id FROM clusters WHERE name = ?"));
  int64_t id = 0;
  const std::string_view text = name;
  NOS_RETURN_IF_ERROR(select->Each([&](SqliteRow& row) { id = row.Integer(0); }, text));
  if (id > 0) return id;
  NOS_ASSIGN(const int64_t count, db_.Number("SELECT count(*) FROM clusters"));
  if (count >= static_cast<int64_t>(kMaxStoredClusters)) {
    return Status(Code::kExhausted, fmt::format("there are {} clusters already", count));
  }
  NOS_ASSIGN(SqliteStatement * insert, db_.Statement("INSERT INTO clusters(name) VALUES (?)"));
  NOS_RETURN_IF_ERROR(insert->Run(text));
  return db_.LastId();
}

Status ClusterTable::SetDerived(int64_t cluster, const Derived& derived) {
  NOS_RETURN_IF_ERROR(db_.SetMeta(fmt::format("derived{}", cluster), derived.until));
  NOS_RETURN_IF_ERROR(db_.SetMeta(fmt::format("again_from{}", cluster), derived.again_from));
  return db_.SetMeta(fmt::format("again_to{}", cluster), derived.again_to);
}

Result<Derived> ClusterTable::DerivedOf(int64_t cluster) {
  Derived derived;
  NOS_ASSIGN(derived.until, db_.Meta(fmt::format("derived{}", cluster)));
  NOS_ASSIGN(derived.again_from, db_.Meta(fmt::format("again_from{}", cluster)));
  NOS_ASSIGN(derived.again_to, db_.Meta(fmt::format("again_to{}", cluster)));
  return derived;
}

Status ClusterTable::Each(FunctionRef<void(int64_t, const std::string&)> visit) {
  NOS_ASSIGN(SqliteStatement * select, db_.Statement("SELECT id, name FROM clusters ORDER BY id"));
  return select->Each([&](SqliteRow& row) { visit(row.Integer(0), std::string(row.Text(1))); });
}

}  // namespace nos::telemetryserver
