// A fixture that converts a small set of class folders, as a folder and in archives.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/data/convert/convert_support.h"

namespace convoy::data::testing {

class ConvertFolders : public ::testing::Test {
 protected:
  static std::vector<TarEntry> small_set(const std::string& prefix = "") {
    return {{prefix + "train/ant/0.png", png(1)},
            {prefix + "train/bee/0.png", png(2)},
            {prefix + "test/ant/0.png", png(3)},
            {prefix + "test/bee/0.png", png(4)}};
  }
  static std::vector<TarEntry> with(std::vector<TarEntry> more) {
    auto entries = small_set();
    entries.insert(entries.end(), more.begin(), more.end());
    return entries;
  }
  ConvertReport run(const std::string& source, const ConvertOptions& options = {}) const {
    return convert(folder_ / source, folder_ / (source + ".h5"), options);
  }
  // Converts the entries as a folder, as a tar and as a zip archive. All must give the same store.
  ConvertReport run_all(const std::vector<TarEntry>& entries, ConvertOptions options = {}, bool zip = true) {
    std::filesystem::remove_all(folder_ / "set");
    write_tree(folder_ / "set", entries);
    write_archive(folder_ / "set.tar", entries);
    if (zip) write_archive(folder_ / "set.zip", entries, true);
    ConvertReport report = run("set", options);
    for (const std::string archive : {"set.tar", "set.zip"}) {
      if (archive == "set.zip" && !zip) continue;
      SCOPED_TRACE(archive);
      const ConvertReport other = run(archive, options);
      EXPECT_TRUE(read_bytes(folder_ / (archive + ".h5")) == read_bytes(folder_ / "set.h5"));
      EXPECT_EQ(left_out_of(other), left_out_of(report));
    }
    return report;
  }
  // Converts the entries as a folder and as a tar archive. Both must fail with a message that holds
  // these words.
  void expect_all_fail(const std::vector<TarEntry>& entries, const std::vector<std::string>& words,
                       const ConvertOptions& options = {}) {
    std::filesystem::remove_all(folder_ / "set");
    write_tree(folder_ / "set", entries);
    write_archive(folder_ / "set.tar", entries);
    for (const char* source : {"set", "set.tar"}) {
      SCOPED_TRACE(source);
      expect_error([&] { run(source, options); }, words);
    }
  }
  Store result() const { return Store(folder_ / "set.h5"); }

  TemporaryFolder folder_;
};

}  // namespace convoy::data::testing
