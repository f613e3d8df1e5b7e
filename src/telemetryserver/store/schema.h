// Tables and migrations of the store. Internal to this library.
#pragma once

#include <array>

namespace nos::telemetryserver {

// Entry n migrates a file from user_version n to n + 1. Released entries are never changed; new
// ones are appended.
inline constexpr std::array kMigrations = {
    R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE clusters(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE subjects(id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL, name TEXT NOT NULL,
                      UNIQUE(cluster, name));
CREATE TABLE metrics(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
-- What each source has delivered last.
CREATE TABLE sources(cluster INTEGER NOT NULL, source TEXT NOT NULL, boot TEXT NOT NULL,
                     sequence INTEGER NOT NULL, seen INTEGER NOT NULL,
                     PRIMARY KEY(cluster, source, boot)) WITHOUT ROWID;
-- Envelopes whose samples are not in chunks yet; AUTOINCREMENT: no number is given twice.
CREATE TABLE journal(id INTEGER PRIMARY KEY AUTOINCREMENT, cluster INTEGER NOT NULL,
                     source TEXT NOT NULL, received INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE events(id INTEGER PRIMARY KEY AUTOINCREMENT, cluster INTEGER NOT NULL,
                    at INTEGER NOT NULL, kind TEXT NOT NULL, object TEXT NOT NULL,
                    late INTEGER NOT NULL, body BLOB NOT NULL);  -- JSON, or that as gzip
CREATE INDEX events_by_time ON events(cluster, at);
CREATE INDEX events_by_kind ON events(cluster, kind, at);
CREATE INDEX events_by_object ON events(cluster, object, at);
CREATE INDEX events_late ON events(cluster, at) WHERE late = 1;
-- The state of a cluster after the event of that number.
CREATE TABLE checkpoints(cluster INTEGER NOT NULL, at INTEGER NOT NULL, event INTEGER NOT NULL,
                         body BLOB NOT NULL, PRIMARY KEY(cluster, at)) WITHOUT ROWID;
-- Which pod held which slice from when to when; until 0: it does so still.
CREATE TABLE holds(id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL, pod TEXT NOT NULL,
                   subject TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL);
CREATE INDEX holds_by_pod ON holds(cluster, pod, since);
CREATE INDEX holds_by_end ON holds(until) WHERE until > 0;
-- Samples: see levels.h.
CREATE TABLE flushes(id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE chunks(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE rollups_5m(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE rollups_1h(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
-- Windows that were rolled up before a subject's samples came.
CREATE TABLE late(level INTEGER NOT NULL, window INTEGER NOT NULL, subject INTEGER NOT NULL,
                  PRIMARY KEY(level, window, subject)) WITHOUT ROWID;
)",
    // Approximate time of a subject's last samples; unknown for existing subjects, so they start
    // with now.
    R"(
ALTER TABLE subjects ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
UPDATE subjects SET seen = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
CREATE INDEX subjects_by_seen ON subjects(seen);
)"};

// Keys of table meta.
inline constexpr const char* kApplied = "applied";
inline constexpr const char* kFlushed = "flushed";

}  // namespace nos::telemetryserver
