#include "controllers/quota_rules.h"

#include <gtest/gtest.h>

namespace nos::controllers {
namespace {

using cluster::ElasticQuota;

class QuotaRulesTest : public ::testing::Test {
 protected:
  static ElasticQuota Single(const std::string& ns, const std::string& cpu = "1") {
    ElasticQuota quota;
    quota.meta.ns = ns;
    quota.meta.name = "q";
    quota.namespaces = {ns};
    quota.min = {{"cpu", *Quantity::Parse(cpu)}};
    return quota;
  }
  static ElasticQuota Composite(const std::string& name, std::vector<std::string> namespaces) {
    ElasticQuota quota = Single("default");
    quota.meta.name = name;
    quota.composite = true;
    quota.namespaces = std::move(namespaces);
    return quota;
  }
  void Have(ElasticQuota quota) {
    all_.push_back(std::make_shared<const ElasticQuota>(std::move(quota)));
  }
  std::string Wrong(const ElasticQuota& quota) {
    std::string text;
    for (const QuotaProblem& problem : CheckQuota(quota, all_).problems) {
      text += (text.empty() ? "" : "; ") + problem.text;
    }
    return text;
  }
  std::string Warning(const ElasticQuota& quota) {
    const auto warnings = CheckQuota(quota, all_).warnings;
    return warnings.empty() ? "" : warnings.front();
  }

  std::vector<quota::SharedQuota> all_;
};

TEST_F(QuotaRulesTest, RefusesSecondQuotaInNamespace) {
  Have(Single("a"));
  EXPECT_EQ(Wrong(Single("a")), "");  // it is the same quota
  ElasticQuota second = Single("a");
  second.meta.name = "second";
  EXPECT_EQ(Wrong(second),
            "namespace a has an ElasticQuota already, q: change that one, or delete it first");
}

TEST_F(QuotaRulesTest, RefusesNamespaceInTwoCompositeQuotas) {
  Have(Composite("team", {"a", "b"}));
  EXPECT_EQ(Wrong(Single("a")),
            "the CompositeElasticQuota default/team covers namespace a already: change that one, "
            "or take the namespace out of its spec.namespaces first");
  EXPECT_EQ(Wrong(Single("c")), "");
  EXPECT_EQ(Wrong(Composite("other", {"b", "c"})),
            "namespace b belongs to the CompositeElasticQuota default/team already: take it out of "
            "the spec.namespaces of one of them");
  Have(Single("c"));
  EXPECT_EQ(Wrong(Composite("other", {"c"})), "");
  EXPECT_EQ(Warning(Composite("other", {"c"})),
            "ElasticQuota c/q counts no more: this quota covers its namespace");
}

TEST_F(QuotaRulesTest, RefusesRepeatedOrMissingNamespaces) {
  EXPECT_EQ(Wrong(Composite("team", {})),
            "spec.namespaces is empty: name the namespaces that share this quota");
  EXPECT_EQ(Wrong(Composite("team", {"a", "b", "a"})), "spec.namespaces has a twice: name it once");
  EXPECT_EQ(Wrong(Composite("team", std::vector<std::string>(1'000'000, "a"))),
            "spec.namespaces names more than 1000: make several quotas with one parent of them");
}

TEST_F(QuotaRulesTest, ChecksLimitsAgainstMin) {
  ElasticQuota quota = Single("a", "2500m");
  quota.max = {{"cpu", *Quantity::Parse("2")}, {"memory", *Quantity::Parse("1Gi")}};
  EXPECT_EQ(Wrong(quota),
            "spec.max of cpu is 2, less than the 2500m of spec.min: raise max or lower min");
  quota.max.clear();
  quota.borrowing_limit = {{"memory", *Quantity::Parse("1")}};
  EXPECT_EQ(Wrong(quota),
            "spec.borrowingLimit names memory, which spec.min does not: only what min names is "
            "lent and borrowed; add it there (0 will do)");
  quota.borrowing_limit.clear();
  quota.lending_limit = {{"cpu", *Quantity::Parse("3")}};
  EXPECT_EQ(Wrong(quota), "");
  EXPECT_EQ(Warning(quota), "spec.lendingLimit of cpu is more than min and limits nothing");
}

TEST_F(QuotaRulesTest, RefusesCycleOfParents) {
  ElasticQuota a = Single("a"), b = Single("b"), c = Single("c");
  a.parent = "a/q";
  EXPECT_EQ(Wrong(a), "spec.parent a/q is this quota or below it: name one that is not, or none");
  a.parent = "x/y";
  EXPECT_EQ(Wrong(a), "");
  EXPECT_EQ(Warning(a), "there is no quota x/y yet: until then this one has no parent");
  b.parent = "a/q";
  c.parent = "b/q";
  Have(b);
  Have(c);
  a.parent = "c/q";
  EXPECT_EQ(Wrong(a), "spec.parent c/q is this quota or below it: name one that is not, or none");
  // A cycle of other quotas is their own problem.
  ElasticQuota d = Single("d", "2"), e = Single("e");
  d.parent = "e/q";
  e.parent = "d/q";
  Have(d);
  Have(e);
  a.parent = "d/q";
  EXPECT_EQ(Wrong(a), "");
}

TEST_F(QuotaRulesTest, ParentMustCoverGuaranteesOfChildren) {
  Have(Single("org", "10"));
  ElasticQuota a = Single("a", "6"), b = Single("b", "5");
  a.parent = b.parent = "org/q";
  EXPECT_EQ(Wrong(a), "");
  Have(a);
  const char* const too_much =
      "the quotas below org/q are guaranteed 11 of cpu together, and it has 10: lower their "
      "spec.min or raise its";
  EXPECT_EQ(Wrong(b), too_much);
  b.min = {{"memory", *Quantity::Parse("1Gi")}};
  EXPECT_EQ(Wrong(b),
            "the quotas below org/q are guaranteed 1Gi of memory together, and it has 0: lower "
            "their spec.min or raise its");
  // The problem is reported for the parent, too.
  EXPECT_EQ(Wrong(Single("org", "5")),
            "the quotas below org/q are guaranteed 6 of cpu together, and it has 5: lower their "
            "spec.min or raise its");
  EXPECT_EQ(Wrong(Single("org", "6")), "");
}

// If two quotas have the same name, the composite one is meant, as in quota/balance.h.
TEST_F(QuotaRulesTest, UsesParentThatIsInForce) {
  ElasticQuota composite = Composite("q", {"b"});
  composite.min = {{"cpu", *Quantity::Parse("100")}};
  Have(Single("default", "1"));
  Have(composite);
  ElasticQuota child = Single("c", "50");
  child.parent = "default/q";
  EXPECT_EQ(Wrong(child), "");
  Have(child);
  const quota::Balance balance(all_);
  const auto parent = balance.terms(*balance.AccountOf("c")).parent;
  ASSERT_TRUE(parent);
  EXPECT_TRUE(balance.terms(*parent).quota->composite);
  EXPECT_EQ(ProblemsInForce(balance)[*balance.AccountOf("c")], std::vector<std::string>());
}

TEST_F(QuotaRulesTest, ReportsProblemsOfQuotasInForce) {
  ElasticQuota parent = Single("a", "10");
  parent.max = {{"cpu", *Quantity::Parse("2")}};
  parent.borrowing_limit = {{"memory", *Quantity::Parse("1")}};
  ElasticQuota child = Single("b", "50"), other = Single("c", "0");
  child.parent = other.parent = "a/q";
  Have(parent);
  Have(child);
  Have(other);
  const quota::Balance balance(all_);
  const auto problems = ProblemsInForce(balance);
  const auto problems_of = [&](const std::string& ns) { return problems[*balance.AccountOf(ns)]; };
  const std::string too_much =
      "the quotas below a/q are guaranteed 50 of cpu together, and it has 10: lower their spec.min "
      "or raise its";
  EXPECT_EQ(problems_of("a"),
            (std::vector<std::string>{
                "spec.max of cpu is 2, less than the 10 of spec.min: raise max or lower min",
                "spec.borrowingLimit names memory, which spec.min does not: only what min names is "
                "lent and borrowed; add it there (0 will do)",
                too_much}));
  EXPECT_EQ(problems_of("b"), std::vector<std::string>{too_much});
  EXPECT_EQ(problems_of("c"), std::vector<std::string>()) << "it is guaranteed nothing";
}

TEST_F(QuotaRulesTest, ReportsOnlyNewOrWorseProblems) {
  Have(Single("org", "10"));
  ElasticQuota other = Single("b", "9");
  other.parent = "org/q";
  Have(other);
  ElasticQuota a = Single("a", "6");
  a.parent = "org/q";
  const QuotaFindings before = CheckQuota(a, all_);
  ASSERT_EQ(before.problems.size(), 1U);
  a.min["cpu"] = *Quantity::Parse("5");
  EXPECT_TRUE(NewProblems(before, CheckQuota(a, all_)).empty());
  a.min["cpu"] = *Quantity::Parse("7");
  EXPECT_EQ(NewProblems(before, CheckQuota(a, all_)).size(), 1U);
}

}  // namespace
}  // namespace nos::controllers
