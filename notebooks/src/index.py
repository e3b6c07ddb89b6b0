# %% [markdown] slot="intro" lang="en"
# # Lessons
#
# Each lesson is one notebook, takes an evening, and runs in under a minute on two CPU cores. You
# build the idea yourself on a toy graph, let the library do the same, prove that the two agree, and
# look at what it costs. Exercises with a check stand at the end; `../solutions` answers them.
#
# No lesson needs a file that another one left behind, so start where you like.

# %% [markdown] slot="intro" lang="ko"
# # 레슨
#
# 레슨 하나는 노트북 하나이며, 하루 저녁이면 마칠 수 있고 CPU 코어 두 개에서 1분 안에 실행됩니다.
# 작은 그래프(graph)에서 핵심 아이디어를 직접 구현하고, 라이브러리로 같은 일을 한 뒤, 두 결과가
# 같음을 증명하고, 비용을 살펴봅니다. 마지막에는 답을 확인해 주는 연습 문제(exercise)가 있으며,
# 풀이는 `../solutions`에 있습니다.
#
# 어떤 레슨도 다른 레슨이 남긴 파일을 필요로 하지 않으므로, 원하는 곳에서 시작해도 됩니다.

# %% [markdown] slot="intro" lang="zh"
# # 课程
#
# 每一课是一个笔记本，用一个晚上就能学完，在两个 CPU 核上运行不到一分钟。先在小图上亲手实现核心想
# 法，再让库做同样的事，证明两者一致，最后看看代价有多大。结尾有可以自动评判的练习（exercise），解答
# 在 `../solutions` 中。
#
# 没有哪一课需要另一课留下的文件，所以可以从任意一课开始。
