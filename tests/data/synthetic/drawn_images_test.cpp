#include "data/synthetic/drawn_images.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "data/store/store.h"
#include "data/synthetic/random_images.h"
#include "data/synthetic/shapes.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

Bytes drawn(const DrawnSet& set, Split split, std::int64_t sample) {
  Bytes pixels(static_cast<std::size_t>(set.size) * static_cast<std::size_t>(set.size) * 3);
  set.draw(split, sample, pixels.data());
  return pixels;
}

TEST(DrawnSet, FollowsFromTheSeed) {
  const TemporaryFolder folder;
  DrawnSet set{.size = 16, .train = 50, .test = 20};
  write_drawn_set(set, folder / "a.h5", 1);
  write_drawn_set(set, folder / "b.h5", 3);
  EXPECT_TRUE(read_bytes(folder / "a.h5") == read_bytes(folder / "b.h5"));
  set.seed = 2;
  write_drawn_set(set, folder / "b.h5", 3);
  EXPECT_FALSE(read_bytes(folder / "a.h5") == read_bytes(folder / "b.h5"));
  EXPECT_NE(drawn(set, Split::train, 3), drawn(set, Split::test, 3));
  EXPECT_NE(drawn(set, Split::train, 3), drawn(set, Split::train, 13)) << "same class, another picture";
}

TEST(DrawnSet, IsABalancedStore) {
  const TemporaryFolder folder;
  const DrawnSet set{.classes = 30, .size = 12, .train = 60, .test = 30};
  write_drawn_set(set, folder / "a.h5");
  const Store store(folder / "a.h5");
  EXPECT_EQ(store.info().classes.size(), 30u);
  EXPECT_EQ(store.info().classes[2], "square");
  EXPECT_EQ(store.info().classes[25], "chequered_ring");
  std::vector<int> count(30);
  for (const auto label : store.labels(Split::train)) ++count[static_cast<std::size_t>(label)];
  EXPECT_EQ(count, std::vector<int>(30, 2));
}

// The mean image of every class must be grey within the bounds of chance, so that a linear model
// cannot learn from it.
TEST(DrawnSet, ClassesHaveNoMeanPicture) {
  const DrawnSet set{.classes = 10, .size = 16};
  const int images = 1500;
  for (int label = 0; label < 10; ++label) {
    std::vector<double> mean(16 * 16 * 3);
    for (int i = 0; i < images; ++i) {
      const Bytes pixels = drawn(set, Split::train, label + 10 * i);
      for (std::size_t p = 0; p < pixels.size(); ++p) mean[p] += pixels[p] / static_cast<double>(images);
    }
    for (const double value : mean) EXPECT_NEAR(value, 127.5, 5 * 80 / std::sqrt(images)) << label;
  }
}

TEST(DrawnSet, FiguresAreDifferentFromEachOther) {
  std::set<std::vector<bool>> pictures;
  for (int figure = 0; figure < kFigures; ++figure) {
    std::vector<bool> inside;
    int count = 0;
    for (int y = -8; y <= 8; ++y) {
      for (int x = -8; x <= 8; ++x) {
        inside.push_back(distance_to_figure(figure, static_cast<float>(x) / 8, static_cast<float>(y) / 8) <
                         0);
        count += inside.back();
      }
    }
    EXPECT_GT(count, 30) << name_of_figure(figure);
    EXPECT_LT(count, 200) << name_of_figure(figure);
    EXPECT_TRUE(pictures.insert(inside).second) << name_of_figure(figure);
  }
}

TEST(DrawnSet, NamesTheSettingThatIsOutOfRange) {
  const TemporaryFolder folder;
  const auto attempt = [&](const DrawnSet& set) {
    return [&folder, set] { write_drawn_set(set, folder / "a.h5"); };
  };
  expect_error(attempt({.classes = 37}), {"--classes 37", "2 to 36"});
  expect_error(attempt({.classes = 1}), {"--classes 1"});
  expect_error(attempt({.size = 7}), {"--size 7"});
  expect_error(attempt({.train = 0}), {"--train 0"});
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
}

TEST(RandomImages, AreTheSameForTheSameSeed) {
  const RandomImages a({5, 5, 3}, 10, 1000, 1), b({5, 5, 3}, 10, 1000, 1), c({5, 5, 3}, 10, 1000, 2);
  EXPECT_EQ(a.size(), 1000);
  EXPECT_EQ(a.label(123), 3);
  EXPECT_TRUE(std::ranges::equal(a.stored(7, {}), b.stored(7, {})));
  EXPECT_FALSE(std::ranges::equal(a.stored(7, {}), c.stored(7, {})));
  EXPECT_FALSE(std::ranges::equal(a.stored(7, {}), a.stored(8, {})));
}

TEST(RandomImages, OfManyLargeImagesKeepsAFew) {
  const RandomImages set({224, 224, 3}, 1000, 1'281'167, 1);
  EXPECT_NO_THROW(set.stored(1'281'166, {}));
}

}  // namespace
}  // namespace convoy::data
