// A program that makes calls from a table, for tests: `runner MODE CALLS INPUTS OUTPUTS`.
//
// A line of CALLS is an id, an op, its inputs (type, rank, sizes, position in INPUTS) and its attributes; a line of
// the answer is the id and "ok" with the results (their elements go to OUTPUTS) or "error" with code and message.
// MODE: eager (at once), const (a graph of constants), feed (placeholders of known shape), late (of unknown shape).
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

struct Job {
  std::string id, op, mode;
  std::vector<LIB::Tensor> in;
  std::map<std::string, std::vector<std::string>> given;

  bool Has(const std::string& name) const { return given.count(name) != 0; }
  const std::string& Only(const std::string& name) const { return given.at(name).at(0); }
  std::vector<int> Ints(const std::string& name) const {
    std::vector<int> values;
    for (const std::string& v : given.at(name)) values.push_back(std::stoi(v));
    return values;
  }
  std::vector<std::int64_t> Longs(const std::string& name) const {
    std::vector<std::int64_t> values;
    for (const std::string& v : given.at(name)) values.push_back(std::stoll(v));
    return values;
  }
  std::vector<double> Doubles(const std::string& name) const {
    std::vector<double> values;
    for (const std::string& v : given.at(name)) values.push_back(std::strtod(v.c_str(), nullptr));
    return values;
  }
  double Double(const std::string& name) const { return std::strtod(Only(name).c_str(), nullptr); }
  std::int64_t Int(const std::string& name) const { return std::stoll(Only(name)); }
  bool Bool(const std::string& name) const { return Only(name) == "true"; }
  std::string Word(const std::string& name) const {
    std::string word;
    const std::string& hex = Only(name);
    for (std::size_t i = 1; i + 1 < hex.size(); i += 2) {
      word += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    return word;
  }
};

struct Answer {
  LIB::Status status;
  std::vector<LIB::Tensor> results;
};

inline std::vector<LIB::Tensor> Listed(const LIB::Tensor& t) { return {t}; }
template <std::size_t N>
std::vector<LIB::Tensor> Listed(const std::array<LIB::Tensor, N>& t) {
  return {t.begin(), t.end()};
}

template <typename Result>
Answer Direct(const Result& result) {
  if (!result.ok()) return {result.status(), {}};
  return {LIB::Status(), Listed(*result)};
}

/// The inputs of a graph, and what is to be fed.
struct Graph {
  LIB::Scope scope = LIB::Scope::NewRootScope();
  LIB::ClientSession::FeedType feeds;
  std::vector<LIB::Input> in;

  explicit Graph(const Job& job) {
    for (const LIB::Tensor& t : job.in) {
      if (job.mode == "const") {
        in.push_back(LIB::ops::Const(scope, t));
        continue;
      }
      const auto shape = job.mode == "feed" ? LIB::PartialTensorShape(t.shape()) : LIB::PartialTensorShape();
      const LIB::ops::Placeholder p(scope, t.dtype(), LIB::ops::Placeholder::Shape(shape));
      in.push_back(p);
      feeds.emplace(p.output, t);
    }
  }

  /// Twice, so that the second run writes to memory that the first has used.
  Answer Run(const LIB::Operation& operation) {
    std::vector<LIB::Output> fetches;
    for (int i = 0; i < operation.num_outputs(); ++i) fetches.push_back(operation.output(i));
    if (!scope.ok()) return {scope.status(), {}};
    const LIB::ClientSession session(scope);
    Answer answer;
    answer.status = session.Run(feeds, fetches, &answer.results);
    if (!answer.status.ok()) return answer;
    answer.results.clear();
    answer.status = session.Run(feeds, fetches, &answer.results);
    return answer;
  }
};

Answer Call(const Job& job);

inline LIB::DataType TypeOf(const std::string& name) {
  for (const LIB::DataType t : {LIB::DT_FLOAT, LIB::DT_DOUBLE, LIB::DT_INT8, LIB::DT_INT16, LIB::DT_INT32,
                                LIB::DT_INT64, LIB::DT_UINT8, LIB::DT_UINT16, LIB::DT_UINT32, LIB::DT_UINT64,
                                LIB::DT_BOOL, LIB::DT_BFLOAT16, LIB::DT_HALF, LIB::DT_INT4, LIB::DT_UINT4, LIB::DT_INT2,
                                LIB::DT_UINT2, LIB::DT_FLOAT8_E5M2, LIB::DT_FLOAT8_E4M3FN, LIB::DT_FLOAT8_E4M3FNUZ,
                                LIB::DT_FLOAT8_E5M2FNUZ, LIB::DT_FLOAT8_E8M0FNU, LIB::DT_FLOAT4_E2M1FN}) {
    if (LIB::DataTypeString(t) == name) return t;
  }
  std::abort();
}

inline Job Read(const std::string& line, const std::vector<char>& blob, const std::string& mode) {
  std::istringstream text(line);
  Job job;
  job.mode = mode;
  std::size_t inputs = 0, attributes = 0;
  text >> job.id >> job.op >> inputs;
  for (std::size_t i = 0; i < inputs; ++i) {
    std::string type;
    std::size_t rank = 0, position = 0;
    text >> type >> rank;
    LIB::TensorShape shape;
    for (std::size_t d = 0; d < rank; ++d) {
      std::int64_t size = 0;
      text >> size;
      shape.AddDim(size);
    }
    text >> position;
    LIB::Tensor t(TypeOf(type), shape);
    if (t.TotalBytes() != 0) std::memcpy(t.data(), blob.data() + position, t.TotalBytes());
    job.in.push_back(t);
  }
  text >> attributes;
  for (std::size_t i = 0; i < attributes; ++i) {
    std::string name, value;
    std::size_t count = 0;
    text >> name >> count;
    std::vector<std::string>& values = job.given[name];
    for (std::size_t n = 0; n < count; ++n) {
      text >> value;
      values.push_back(value);
    }
  }
  if (!text) std::abort();
  return job;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  std::ifstream calls(argv[2]), blob_file(argv[3], std::ios::binary);
  std::ofstream out(argv[4], std::ios::binary);
  const std::vector<char> blob((std::istreambuf_iterator<char>(blob_file)), std::istreambuf_iterator<char>());
  std::size_t position = 0;
  for (std::string line; std::getline(calls, line);) {
    const Job job = Read(line, blob, argv[1]);
    const Answer answer = Call(job);
    std::cout << job.id;
    if (!answer.status.ok()) {
      std::cout << " error " << static_cast<int>(answer.status.code()) << " " << answer.status.message() << "\n";
      continue;
    }
    std::cout << " ok";
    for (const LIB::Tensor& t : answer.results) {
      std::cout << " " << LIB::DataTypeString(t.dtype()) << " " << t.dims();
      for (const std::int64_t size : t.shape().dim_sizes()) std::cout << " " << size;
      std::cout << " " << position;
      if (t.TotalBytes() != 0) out.write(static_cast<const char*>(t.data()), static_cast<std::streamsize>(t.TotalBytes()));
      position += t.TotalBytes();
    }
    std::cout << "\n";
  }
  return 0;
}
