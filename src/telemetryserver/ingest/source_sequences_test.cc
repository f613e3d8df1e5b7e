#include "telemetryserver/ingest/source_sequences.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

telemetry::Envelope EnvelopeOf(const std::string& source, const std::string& boot,
                               int64_t sequence) {
  telemetry::Envelope envelope;
  envelope.cluster = "prod";
  envelope.source = source;
  envelope.boot = boot;
  envelope.sequence = sequence;
  return envelope;
}

TEST(SourceSequencesTest, ForgetsWhatIsDiscarded) {
  SourceSequences sequences(10);
  sequences.Load("prod", "node/a", "1", 5);
  sequences.Set(EnvelopeOf("node/a", "1", 6));
  EXPECT_EQ(sequences.Of(EnvelopeOf("node/a", "1", 0)), 6);
  sequences.Discard();
  EXPECT_EQ(sequences.Of(EnvelopeOf("node/a", "1", 0)), 5);
  sequences.Set(EnvelopeOf("node/a", "1", 7));
  sequences.Commit();
  sequences.Discard();
  EXPECT_EQ(sequences.Of(EnvelopeOf("node/a", "1", 0)), 7);
}

TEST(SourceSequencesTest, LimitsBootsOfOneCluster) {
  SourceSequences sequences(2);
  sequences.Set(EnvelopeOf("node/a", "1", 1));
  sequences.Set(EnvelopeOf("node/a", "2", 1));
  sequences.Commit();
  sequences.Set(EnvelopeOf("node/a", "2", 2));  // a known boot does not count twice
  sequences.Commit();
  EXPECT_FALSE(sequences.HasRoom("prod"));
  EXPECT_TRUE(sequences.HasRoom("test"));
}

TEST(SourceSequencesTest, KnowsSourceByAnyBootOnDisk) {
  SourceSequences sequences(10);
  sequences.Set(EnvelopeOf("node/a", "1", 1));
  EXPECT_FALSE(sequences.KnowsSource(EnvelopeOf("node/a", "2", 1)));
  sequences.Commit();
  EXPECT_TRUE(sequences.KnowsSource(EnvelopeOf("node/a", "2", 1)));
  EXPECT_FALSE(sequences.KnowsSource(EnvelopeOf("node/ab", "1", 1)));
}

}  // namespace
}  // namespace nos::telemetryserver
