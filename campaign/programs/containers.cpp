// Uses maps, strings, streams, regular expressions and virtual functions.
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

struct Square : Shape {
    double side;
    explicit Square(double side) : side(side) {}
    double area() const override { return side * side; }
};

struct Circle : Shape {
    double radius;
    explicit Circle(double radius) : radius(radius) {}
    double area() const override { return 3.14159 * radius * radius; }
};

int main() {
    std::map<std::string, int> ordered;
    std::unordered_map<int, std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 300; i++) {
        ordered["key" + std::to_string(i * 37 % 101)] += i;
        if (i % 2)
            shapes[i % 64] = std::make_unique<Square>(i);
        else
            shapes[i % 64] = std::make_unique<Circle>(i);
    }
    double area = 0;
    for (int i = 0; i < 64; i++) area += shapes[i]->area();
    std::stringstream text;
    for (const auto &[key, value] : ordered) text << key << '=' << value << ' ';
    std::string all = text.str();
    std::regex pattern("key[0-9]*7=([0-9]+)");
    auto first = std::sregex_iterator(all.begin(), all.end(), pattern);
    for (auto match = first; match != std::sregex_iterator(); ++match) std::cout << (*match)[1] << '\n';
    std::cout << area << std::endl;
}
