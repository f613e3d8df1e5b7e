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
  SourceSequences sequences(10, 10);
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
  SourceSequences sequences(2, 2);
  sequences.Set(EnvelopeOf("node/a", "1", 1));
  sequences.Set(EnvelopeOf("node/a", "2", 1));
  sequences.Commit();
  sequences.Set(EnvelopeOf("node/a", "2", 2));  // a known boot does not count twice
  sequences.Commit();
  EXPECT_EQ(sequences.Admits(EnvelopeOf("node/b", "1", 1)).message(),
            "cluster prod has too many sources already: each spool that began anew within 90 days "
            "is one");
  telemetry::Envelope other = EnvelopeOf("node/b", "1", 1);
  other.cluster = "test";
  EXPECT_TRUE(sequences.Admits(other).ok());
}

TEST(SourceSequencesTest, BootsOfOneSourceLeaveRoomForOthers) {
  SourceSequences sequences(10, 3);
  sequences.Load("prod", "node/a", "1", 1);
  sequences.Set(EnvelopeOf("node/a", "2", 1));
  EXPECT_TRUE(sequences.Admits(EnvelopeOf("node/a", "3", 1)).ok());
  sequences.Set(EnvelopeOf("node/a", "3", 1));
  for (const bool committed : {false, true}) {
    if (committed) sequences.Commit();
    EXPECT_EQ(sequences.Admits(EnvelopeOf("node/a", "4", 1)).message(),
              "node/a has begun 3 spools within 90 days already");
    EXPECT_TRUE(sequences.Admits(EnvelopeOf("node/ab", "1", 1)).ok());
  }
}

TEST(SourceSequencesTest, KnowsSourceByAnyBootOnDisk) {
  SourceSequences sequences(10, 10);
  sequences.Set(EnvelopeOf("node/a", "1", 1));
  EXPECT_FALSE(sequences.KnowsSource(EnvelopeOf("node/a", "2", 1)));
  sequences.Commit();
  EXPECT_TRUE(sequences.KnowsSource(EnvelopeOf("node/a", "2", 1)));
  EXPECT_FALSE(sequences.KnowsSource(EnvelopeOf("node/ab", "1", 1)));
}

}  // namespace
}  // namespace nos::telemetryserver
