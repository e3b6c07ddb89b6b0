# %% [markdown] slot="intro" lang="en"
# # Lessons
#
# Each lesson is one notebook, takes an evening to work through, and runs in about a minute or less
# on two idle CPU cores. You implement the idea yourself on a toy graph, do the same with the
# library, check that the two results agree, and look at the cost. At the end there are
# self-checking exercises; our answers are in `../solutions`.
#
# You should know Python and be able to write a training loop in PyTorch. The first lesson explains
# what a graph neural network is. You need neither a GPU nor a network connection.
#
# ## The path
#
# No lesson needs a file that another lesson has written, so you may start anywhere. But each
# assumes that you know the ideas of the lesson in the "requires" column.

# %% [markdown] slot="intro" lang="ko"
# # 레슨
#
# 레슨 하나는 Jupyter 노트북 하나이며, 하루 저녁이면 마칠 수 있습니다. 다른 작업이 없는 CPU 코어 두
# 개에서 1분 정도면 실행이 끝납니다. 작은 그래프에서 핵심 아이디어를 직접 구현하고, 라이브러리로도
# 구현한 뒤, 두 결과가 같은지 확인하고 비용을 살펴봅니다. 마지막에는 답이 바로 채점되는 연습
# 문제가 있으며, 풀이는 `../solutions/ko`에 있습니다.
#
# Python을 알고, PyTorch로 학습 루프를 작성할 수 있어야 합니다. 그래프 신경망이 무엇인지는 첫
# 레슨에서 설명합니다. GPU도 네트워크 연결도 필요하지 않습니다.
#
# ## 학습 경로
#
# 다른 레슨에서 만든 파일이 필요한 레슨은 없으므로, 원하는 레슨부터 시작해도 됩니다. 다만 "먼저 볼
# 레슨"에 적힌 레슨의 내용은 알고 있어야 합니다.

# %% [markdown] slot="intro" lang="zh"
# # 课程
#
# 每一课是一个 Notebook，用一个晚上就能学完；在两个空闲的 CPU 核上，把一课的代码全部运行一遍只需一分
# 钟左右。先在一张小图上亲手实现核心思想，再用库实现，验证两者一致，最后看看开销有多大。末尾有可以自
# 动评判的练习，解答在 `../solutions/zh` 中。
#
# 你需要会用 Python，并且知道怎样用 PyTorch 写训练循环。什么是图神经网络，第一课会讲。不需要 GPU，
# 也不需要联网。
#
# ## 学习路线
#
# 每一课都不依赖其他课生成的文件，所以可以从任意一课开始。不过，学习每一课之前，应当先了解“先修”一
# 栏中各课的内容。

# %% [markdown] slot="table" lang="en"
# | lesson | afterward you can | requires | minutes | processes |
# |---|---|---|---:|---|

# %% [markdown] slot="table" lang="ko"
# | 레슨 | 배우는 내용 | 먼저 볼 레슨 | 시간(분) | 실행되는 프로세스 |
# |---|---|---|---:|---|

# %% [markdown] slot="table" lang="zh"
# | 课程 | 学完之后能够 | 先修 | 分钟 | 进程 |
# |---|---|---|---:|---|

# %% [markdown] slot="01_node_classification" lang="en"
# | 01 TITLE | turn a table into a graph; train on sampled neighbors and predict with all neighbors | – | 90 | one |

# %% [markdown] slot="01_node_classification" lang="ko"
# | 01 TITLE | 표로 그래프를 만들고, 이웃을 샘플링하여 학습한 뒤, 모든 이웃으로 예측합니다 | – | 90 | 하나 |

# %% [markdown] slot="01_node_classification" lang="zh"
# | 01 TITLE | 用表格建图；用采样得到的邻居训练，用全部邻居预测 | – | 90 | 一个 |

# %% [markdown] slot="02_link_prediction" lang="en"
# | 02 TITLE | learn from edges and negative pairs; find and prevent data leakage | 01 | 105 | one |

# %% [markdown] slot="02_link_prediction" lang="ko"
# | 02 TITLE | 에지와 네거티브 쌍으로 학습하고, 데이터 누수를 찾아 막습니다 | 01 | 105 | 하나 |

# %% [markdown] slot="02_link_prediction" lang="zh"
# | 02 TITLE | 以边为正样本，连同负样本一起训练；发现并防止数据泄漏 | 01 | 105 | 一个 |

# %% [markdown] slot="03_custom_sampling" lang="en"
# | 03 TITLE | write samplers, check that they are correct, and compare how much they read | 01 | 120 | one |

# %% [markdown] slot="03_custom_sampling" lang="ko"
# | 03 TITLE | 샘플러(sampler)를 작성하고, 올바른지 확인하고, 샘플러마다 읽는 데이터의 양을 비교합니다 | 01 | 120 | 하나 |

# %% [markdown] slot="03_custom_sampling" lang="zh"
# | 03 TITLE | 编写采样器（sampler），验证其正确性，比较不同采样器的读取量 | 01 | 120 | 一个 |

# %% [markdown] slot="04_multi_gpu" lang="en"
# | 04 TITLE | train in several processes, check that the result is the same as with one, and recognize three classic failures | 01 | 105 | one, plus up to three at a time |

# %% [markdown] slot="04_multi_gpu" lang="ko"
# | 04 TITLE | 여러 프로세스로 학습하고, 프로세스 하나로 학습한 결과와 같은지 확인하고, 대표적인 장애 세 가지를 구별합니다 | 01 | 105 | 노트북 외에 한 번에 최대 세 개 |

# %% [markdown] slot="04_multi_gpu" lang="zh"
# | 04 TITLE | 用多个进程训练，验证结果与单个进程相同，识别三种典型的故障 | 01 | 105 | 每次最多另起三个 |

# %% [markdown] slot="05_partitioning" lang="en"
# | 05 TITLE | partition a graph, judge the edge cut and the balance, and convert between original and new IDs | 01 | 120 | one |

# %% [markdown] slot="05_partitioning" lang="ko"
# | 05 TITLE | 그래프를 나누고, 에지 컷(edge cut)과 균형을 평가하고, ID를 양방향으로 변환합니다 | 01 | 120 | 하나 |

# %% [markdown] slot="05_partitioning" lang="zh"
# | 05 TITLE | 切分一张图，评价切分质量与均衡程度，在新旧 ID 之间来回转换 | 01 | 120 | 一个 |

# %% [markdown] slot="06_distributed_api" lang="en"
# | 06 TITLE | make a training loop distributed by changing six lines; train embeddings for nodes without features | 05 | 105 | one, which plays the role of all machines |

# %% [markdown] slot="06_distributed_api" lang="ko"
# | 06 TITLE | 여섯 줄을 고쳐 학습 스크립트를 분산 방식으로 바꾸고, 피처(feature)가 없는 노드의 임베딩을 학습합니다 | 05 | 105 | 하나가 모든 머신 역할 |

# %% [markdown] slot="06_distributed_api" lang="zh"
# | 06 TITLE | 改六行代码，把训练脚本变成分布式的；为没有特征（feature）的节点训练嵌入 | 05 | 105 | 一个，模拟所有机器 |

# %% [markdown] slot="07_cluster_on_a_laptop" lang="en"
# | 07 TITLE | count what a job on many machines sends, predict how long it takes, and compare both with a real job | 06 | 105 | one, which plays the role of all machines; then the servers and trainers of two machines |

# %% [markdown] slot="07_cluster_on_a_laptop" lang="ko"
# | 07 TITLE | 여러 머신에서 실행하는 작업의 전송량을 합산하고, 걸리는 시간을 예측하여, 실제 작업과 비교합니다 | 06 | 105 | 하나가 모든 머신 역할, 이어서 머신 두 대의 서버와 트레이너(trainer) |

# %% [markdown] slot="07_cluster_on_a_laptop" lang="zh"
# | 07 TITLE | 统计多台机器上的作业要传输多少数据，预测所需时间，再与真实的作业比较 | 06 | 105 | 一个，模拟所有机器；之后是两台机器的服务器进程和训练器（trainer） |

# %% [markdown] slot="08_heterogeneous" lang="en"
# | 08 TITLE | train on partitioned heterogeneous graphs, and convert between type-wise and homogeneous IDs | 06 | 105 | one, which plays the role of all machines |

# %% [markdown] slot="08_heterogeneous" lang="ko"
# | 08 TITLE | 여러 파티션(partition)으로 나눈 이종 그래프(heterogeneous graph)에서 학습하고, 타입별 ID(type-wise ID)와 동종 ID(homogeneous ID)를 서로 변환합니다 | 06 | 105 | 하나가 모든 머신 역할 |

# %% [markdown] slot="08_heterogeneous" lang="zh"
# | 08 TITLE | 在切成分区（partition）的异构图（heterogeneous graph）上训练，在类型内 ID（type-wise ID）与同构 ID（homogeneous ID）之间转换 | 06 | 105 | 一个，模拟所有机器 |

# %% [markdown] slot="09_launching" lang="en"
# | 09 TITLE | prepare machines, start a job on them, find out what went wrong, and resume the job | 06 | 105 | one, and the servers, trainers and samplers of two machines |

# %% [markdown] slot="09_launching" lang="ko"
# | 09 TITLE | 여러 머신을 준비하고, 작업을 실행하고, 장애의 원인을 찾고, 작업을 이어서 실행합니다 | 06 | 105 | 머신 두 대의 서버, 트레이너, 샘플러 |

# %% [markdown] slot="09_launching" lang="zh"
# | 09 TITLE | 准备多台机器，启动作业，查明故障原因，让作业从中断处继续运行 | 06 | 105 | 两台机器的服务器进程、训练器和采样器进程 |

# %% [markdown] slot="10_scaling_study" lang="en"
# | 10 TITLE | find the bottleneck of a job, choose a cache, a fanout and a network, decide what to buy, and plan for larger graphs | 07 | 120 | one, which plays the role of all machines |

# %% [markdown] slot="10_scaling_study" lang="ko"
# | 10 TITLE | 작업의 병목을 찾고, 캐시(cache), 팬아웃(fanout), 네트워크를 고르고, 무엇을 살지 결정하고, 더 큰 그래프의 학습을 계획합니다 | 07 | 120 | 하나가 모든 머신 역할 |

# %% [markdown] slot="10_scaling_study" lang="zh"
# | 10 TITLE | 找出作业的瓶颈，选择缓存（cache）、扇出（fanout）和网络，决定该买什么，并为更大的图做计划 | 07 | 120 | 一个，模拟所有机器 |

# %% [markdown] slot="11_replayed_papers" lang="en"
# | 11 TITLE | count remote feature rows to check what papers claim about caches, find the minimum number of rows that must be fetched, whichever cache is used, and tell whether a difference comes from the caching policy or from the graph | 10 | 105 | one, which plays the role of all machines |

# %% [markdown] slot="11_replayed_papers" lang="ko"
# | 11 TITLE | 캐시와 원격 행에 관한 논문의 주장이 맞는지 행의 수를 직접 세어 확인하고, 어떤 캐시를 쓰더라도 가져와야 하는 행 수의 하한을 구하고, 논문의 값과 차이가 나는 원인이 캐시 정책인지 그래프인지 가려냅니다 | 10 | 105 | 하나가 모든 머신 역할 |

# %% [markdown] slot="11_replayed_papers" lang="zh"
# | 11 TITLE | 亲手统计读取了多少远程特征行，检验论文中关于缓存的结论，求出无论使用哪种缓存都至少要读取多少行，分清统计结果与论文的差异来自策略还是来自图 | 10 | 105 | 一个，模拟所有机器 |

# %% [markdown] slot="12_after_training" lang="en"
# | 12 TITLE | score nodes that were not there at training, bound what a request reads, append a day of data, notice drift, and load a checkpoint of three machines on one | 08 | 100 | one, which also plays the role of three machines |

# %% [markdown] slot="12_after_training" lang="ko"
# | 12 TITLE | 학습할 때 없던 노드의 점수를 구하고, 요청 하나가 읽는 양에 상한을 두고, 하루치 데이터를 덧붙이고, 드리프트를 알아차리고, 머신 세 대의 체크포인트(checkpoint)를 한 대에서 불러옵니다 | 08 | 100 | 하나가 머신 세 대의 역할도 |

# %% [markdown] slot="12_after_training" lang="zh"
# | 12 TITLE | 为训练时不存在的节点打分，限制一次请求读取的数量，追加一天的数据，发现漂移，并在一台机器上加载三台机器的检查点（checkpoint） | 08 | 100 | 一个，也模拟三台机器 |

# %% [markdown] slot="routes" lang="en"
# The times given include reading, running the code and doing the exercises. They are estimated from
# the length of the lessons; allow more if you are new to PyTorch.
#
# ## Which lessons to take
#
# - One machine with one or several GPUs: 01, 04.
# - A graph too large for one machine: 01, 05, 06, 09.
# - A heterogeneous graph, with several types of nodes or edges: 01, 05, 06, 08.
# - Research on sampling: 01, 03.
#
# If you have tables of your own, follow the page ["Your own data"](../../docs/own_data.md) after
# lesson 01. For readers of chapters 6 and 7 of DGL's user guide, [a
# table](../../docs/from_the_guide.md) shows which lessons cover the same ground.
#
# Teachers will find weekly plans and advice on grading in the [guide for
# teachers](../../docs/teaching.md).

# %% [markdown] slot="routes" lang="ko"
# 시간은 읽기와 실행, 연습 문제 풀이를 합친 것으로, 레슨의 길이로 어림한 값입니다. PyTorch가
# 익숙하지 않다면 시간을 더 넉넉히 잡으십시오.
#
# ## 목적별 순서
#
# - GPU가 한 개 또는 여러 개 있는 머신 한 대: 01, 04.
# - 머신 한 대에 담을 수 없는 그래프: 01, 05, 06, 09.
# - 이종 그래프: 01, 05, 06, 08.
# - 샘플링 연구: 01, 03.
#
# 직접 모은 표 형식의 데이터가 있다면 레슨 01 다음에 [내 데이터로 학습하기](../../docs/own_data.ko.md)를
# 따라 해 보십시오. DGL 사용자 가이드의 6장이나 7장을 알고 있다면 [가이드와 레슨을 잇는
# 표](../../docs/from_the_guide.ko.md)를 참고하십시오.
#
# 주별 계획과 채점 방법은 [교사를 위한 안내](../../docs/teaching.ko.md)에 있습니다.

# %% [markdown] slot="routes" lang="zh"
# 分钟数包括阅读、运行和练习所需的时间，是按课程篇幅估计的；如果 PyTorch 用得还不多，请多留些时间。
#
# ## 按目的选择
#
# - 一台机器，带一块或多块 GPU：01、04。
# - 一台机器放不下的图：01、05、06、09。
# - 异构图（节点或边有多种类型）：01、05、06、08。
# - 研究采样方法：01、03。
#
# 如果有自己的表格，学完第 01 课后可以跟着[《用自己的数据训练》](../../docs/own_data.zh.md)做一遍。如果
# 熟悉 DGL 用户指南的第 6、7 章，可以用[这张表](../../docs/from_the_guide.zh.md)从指南的小节找到对应
# 的课程。
#
# 按周安排的教学计划和评分方法见[教师指南](../../docs/teaching.zh.md)。
