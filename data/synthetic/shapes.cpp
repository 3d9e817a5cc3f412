#include "data/synthetic/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace convoy::data {
namespace {

float disc(float x, float y, float radius) { return std::hypot(x, y) - radius; }

float box(float x, float y, float half_width, float half_height) {
  const float dx = std::abs(x) - half_width, dy = std::abs(y) - half_height;
  return std::hypot(std::max(dx, 0.0f), std::max(dy, 0.0f)) + std::min(std::max(dx, dy), 0.0f);
}

// Returns the signed distance to a regular polygon around the origin, computed as the intersection
// of half-planes.
float polygon(float x, float y, int sides, float inner_radius) {
  float distance = -1e9f;
  for (int i = 0; i < sides; ++i) {
    const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(i) / static_cast<float>(sides);
    distance = std::max(distance, x * std::cos(angle) + y * std::sin(angle) - inner_radius);
  }
  return distance;
}

float star(float x, float y) {
  const float fifth = 2 * std::numbers::pi_v<float> / 5;
  const float angle = std::atan2(y, x);
  const float from_tip = std::abs(angle - fifth * std::round(angle / fifth));
  const float radius = std::hypot(x, y);
  // Measure the distance to the edge that leads from a tip (radius 1) to the next inner corner
  // (radius 0.4).
  const float px = radius * std::cos(from_tip), py = radius * std::sin(from_tip);
  const float corner_x = 0.4f * std::cos(fifth / 2), corner_y = 0.4f * std::sin(fifth / 2);
  const float ex = corner_x - 1, ey = corner_y, length = std::hypot(ex, ey);
  return ((px - 1) * ey - py * ex) / length;
}

// Returns the signed distance to a bar of the given half length and half width. The bar's centre is
// (cx, cy), and `angle` is its rotation.
float bar(float x, float y, float cx, float cy, float angle, float half_length, float half_width) {
  const float dx = x - cx, dy = y - cy, c = std::cos(angle), s = std::sin(angle);
  return box(c * dx + s * dy, c * dy - s * dx, half_length, half_width);
}

float three_dots(float x, float y) {
  float distance = 1e9f;
  for (int i = 0; i < 3; ++i) {
    const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(i) / 3;
    distance = std::min(distance, disc(x - 0.62f * std::cos(angle), y - 0.62f * std::sin(angle), 0.34f));
  }
  return distance;
}

}  // namespace

const char* name_of_figure(int figure) {
  static constexpr std::array<const char*, kFigures> names{"disc",  "ring", "square",   "triangle",
                                                           "cross", "star", "crescent", "two_bars",
                                                           "frame", "dots", "corner",   "arrow"};
  return names.at(static_cast<std::size_t>(figure));
}

float distance_to_figure(int figure, float x, float y) {
  switch (figure) {
    case 0:
      return disc(x, y, 0.85f);
    case 1:
      return std::abs(disc(x, y, 0.7f)) - 0.2f;
    case 2:
      return box(x, y, 0.72f, 0.72f);
    case 3:
      return polygon(x, y, 3, 0.5f);
    case 4:
      return std::min(box(x, y, 0.95f, 0.26f), box(x, y, 0.26f, 0.95f));
    case 5:
      return star(x, y);
    case 6:
      return std::max(disc(x, y, 0.9f), -disc(x - 0.45f, y, 0.75f));
    case 7:
      return std::min(box(x, y - 0.5f, 0.9f, 0.22f), box(x, y + 0.5f, 0.9f, 0.22f));
    case 8:
      return std::abs(box(x, y, 0.62f, 0.62f)) - 0.16f;
    case 9:
      return three_dots(x, y);
    case 10:
      return std::min(box(x + 0.5f, y, 0.24f, 0.85f), box(x, y + 0.61f, 0.74f, 0.24f));
    default:  // arrow
      return std::min(
          bar(x, y, -0.1f, 0, 0, 0.8f, 0.2f),
          std::min(bar(x, y, 0.42f, 0.34f, -0.8f, 0.5f, 0.2f), bar(x, y, 0.42f, -0.34f, 0.8f, 0.5f, 0.2f)));
  }
}

}  // namespace convoy::data
